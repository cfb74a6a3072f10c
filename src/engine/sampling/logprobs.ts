/** Log probabilities from raw logits, before any sampler. */
import type { TokenLogprob } from "../../scheduler/step-plan.js";
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

/** Indices of the `count` largest values, in one pass: `count` is small, so nearly every value fails the first comparison. */
function largestIndices(values: Float32Array, count: number): number[] {
  const kept: number[] = [];
  let threshold = -Infinity;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] as number;
    if (!(value > threshold)) continue;
    let place = kept.length;
    while (place > 0 && (values[kept[place - 1] as number] as number) < value) place--;
    kept.splice(place, 0, index);
    if (kept.length > count) kept.pop();
    if (kept.length === count) threshold = values[kept[count - 1] as number] as number;
  }
  return kept;
}
