/** Log probabilities from raw logits, before any sampler. */
import type { TokenLogprob } from "../../scheduler/step-plan.js";
import { largestIndices } from "./largest.js";
import { sumOfExponentials } from "./softmax.js";

/** Stands for "as good as impossible": JSON has no infinity, and OpenAI's API uses this number. */
const leastLogprob = -9999;

/** Natural logarithm of the probability of `token`, and of the `count` likeliest tokens, likeliest first and lower ids first among equals. */
export function tokenLogprobs(logits: Float32Array, token: number, count: number): TokenLogprob {
  const top = largestIndices(logits, Math.max(count, 1));
  const largest = logits[top[0] ?? token] as number;
  const logSum = largest + Math.log(sumOfExponentials(logits, largest));
  const logprob = (id: number): number => {
    const value = (logits[id] as number) - logSum;
    return Number.isFinite(value) ? Math.max(value, leastLogprob) : leastLogprob;
  };
  return { logprob: logprob(token), top: top.slice(0, count).map((id) => [id, logprob(id)] as const) };
}
