import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Llama, LlamaModel } from "../../src/engine/llama/index.js";
import type { SamplingParameters } from "../../src/engine/protocol.js";
import { type Begin, type Bench, begin, chatTokens, createBench, generate, openTinyModel, row, sampled, step, textOf } from "./harness.js";

let llama: Llama;
let model: LlamaModel;
let bench: Bench;
/** A prompt after which many tokens are likely. */
let prompt: number[];
beforeAll(async () => {
  ({ llama, model } = await openTinyModel());
  bench = await createBench(model);
  prompt = await chatTokens(model, "Tell me a story.");
});
afterAll(async () => {
  await bench.close();
  model.close();
  llama.close();
});

const run = (sampling: Partial<SamplingParameters>, options: Begin & { count?: number } = {}) =>
  generate(bench.executor, prompt, options.count ?? 24, { ...options, sampling, ignoreEndOfGeneration: options.ignoreEndOfGeneration ?? true });

/** High enough to make different draws likely at every position. */
const hot: Partial<SamplingParameters> = { temperature: 2 };

describe("chance", () => {
  test("the same seed gives the same tokens, another seed others", async () => {
    const first = await run(hot, { seed: 11 });
    expect(await run(hot, { seed: 11 })).toEqual(first);
    expect(await run(hot, { seed: 12 })).not.toEqual(first);
  });

  const settings: [string, Partial<SamplingParameters>][] = [
    ["temperature alone", hot],
    ["truncation", { temperature: 1.5, topK: 50, topP: 0.95, minP: 0.01, typicalP: 0.98, topNSigma: 3 }],
    ["XTC", { temperature: 1.5, xtc: { probability: 0.5, threshold: 0.05 } }],
    ["dynamic temperature", { temperature: 1.5, dynamicTemperature: { range: 0.5, exponent: 1 } }],
    ["penalties", { temperature: 1.5, repeatPenalty: 1.3, frequencyPenalty: 0.5, presencePenalty: 0.5, repeatLastN: 16 }],
    ["DRY", { temperature: 1.5, dry: { multiplier: 0.8, base: 1.75, allowedLength: 2, penaltyLastN: -1, sequenceBreakers: ["\n", ":", "é", "😀"] } }],
  ];

  test.each(settings)("a sequence continued elsewhere draws what it would have drawn: %s", async (_, sampling) => {
    const whole = await run(sampling, { seed: 5 });
    for (const cut of [1, 7, 20]) {
      const rest = await run(sampling, { seed: 5, outputTokens: whole.slice(0, cut), count: whole.length - cut });
      expect(rest, `continued after ${cut}`).toEqual(whole.slice(cut));
    }
  });

  test.each(settings)("what others draw beside a sequence changes nothing: %s", async (_, sampling) => {
    const alone = await run(sampling, { seed: 5, count: 4 });
    const { executor } = bench;
    const names = ["one", "two", "three"];
    names.forEach((name, index) => {
      begin(executor, name, { sampling, seed: index === 1 ? 5 : 100 + index, ignoreEndOfGeneration: true, promptTokens: Int32Array.from(prompt) });
    });
    let rows = names.map((name, slot) => row(name, slot, 0, prompt));
    let moves = rows.map(({ slot }) => ({ kind: "trim", slot, keepTokens: 0 }) as const);
    const second: number[] = [];
    for (let index = 0; index < 4; index++) {
      const results = await step(executor, rows, moves);
      moves = [];
      second.push(sampled(results[1]).token);
      rows = rows.map((done, slot) => row(done.sequence, slot, done.start + done.tokens.length, [sampled(results[slot]).token]));
    }
    for (const name of names) executor.end(name);
    expect(second).toEqual(alone);
  });

  test("mirostat repeats itself from the same seed", async () => {
    for (const version of [1, 2] as const) {
      const sampling = { temperature: 1, mirostat: { version, tau: 5, eta: 0.1 } };
      expect(await run(sampling, { seed: 3 })).toEqual(await run(sampling, { seed: 3 }));
    }
  });
});

describe("truncation", () => {
  test.each([
    ["top_k of one", { topK: 1 }],
    ["min_p of one", { minP: 1 }],
    ["a top_p next to nothing", { topP: 1e-6 }],
  ])("%s is greedy", async (_, truncation) => {
    const greedy = await run({ temperature: 0 });
    expect(await run({ temperature: 2, ...truncation }, { seed: 9 })).toEqual(greedy);
  });

  test("temperature 0 is greedy whatever else is set, and a tiny one as good as greedy", async () => {
    const greedy = await run({ temperature: 0 });
    expect(await run({ temperature: 0, topK: 40, topP: 0.5, minP: 0.2, xtc: { probability: 1, threshold: 0.01 } }, { seed: 4 })).toEqual(greedy);
    expect(await run({ temperature: 1e-4 }, { seed: 4 })).toEqual(greedy);
  });

  test.each<[string, Partial<SamplingParameters>]>([
    ["mirostat", { temperature: 1e-10, mirostat: { version: 1, tau: 5, eta: 0.1 } }],
    ["the second mirostat", { temperature: 1e-10, mirostat: { version: 2, tau: 5, eta: 0.1 } }],
    ["dynamic temperature", { temperature: 1e-45, dynamicTemperature: { range: 1e-45, exponent: 0 } }],
    ["dynamic temperature at its lowest", { temperature: 0.5, dynamicTemperature: { range: 0.5, exponent: 100 } }],
    ["top-nσ", { temperature: 1e-38, topNSigma: 1 }],
    ["min-p", { temperature: 1e-45, minP: 0.1 }],
    ["nothing else", { temperature: 1e-45 }],
  ])("a temperature next to nothing is greedy with %s", async (_, sampling) => {
    expect(await run(sampling, { seed: 4 })).toEqual(await run({ temperature: 0 }));
  });

  property.prop([fc.nat(), fc.integer({ min: 1, max: 5 })], { numRuns: 10 })("top_k draws only among the k likeliest", async (seed, topK) => {
    const { executor } = bench;
    begin(executor, "k", { sampling: { temperature: 3, topK }, seed, topLogprobs: 20 });
    const [result] = await step(executor, [row("k", 0, 0, prompt)], [{ kind: "trim", slot: 0, keepTokens: 0 }]);
    executor.end("k");
    const { token, logprob } = sampled(result);
    expect(logprob?.top.slice(0, topK).map(([id]) => id)).toContain(token);
  });

  property.prop([fc.nat()], { numRuns: 10 })("min_p draws only what is likely enough next to the likeliest", async (seed) => {
    const { executor } = bench;
    begin(executor, "p", { sampling: { temperature: 1, minP: 0.3 }, seed, topLogprobs: 1 });
    const [result] = await step(executor, [row("p", 0, 0, prompt)], [{ kind: "trim", slot: 0, keepTokens: 0 }]);
    executor.end("p");
    const { logprob } = sampled(result);
    expect(logprob?.logprob).toBeGreaterThanOrEqual((logprob?.top[0]?.[1] as number) + Math.log(0.3) - 1e-4);
  });
});

describe("biases and bans", () => {
  test("a banned token is never chosen, greedily or by chance", async () => {
    const greedy = await run({ temperature: 0 });
    const banned = [...new Set(greedy)];
    const logitBias = banned.map((id) => [id, null] as const);
    for (const sampling of [{ temperature: 0 }, hot, { temperature: 0, repeatPenalty: 1.1 }]) {
      const output = await run({ ...sampling, logitBias }, { seed: 8 });
      expect(output).toHaveLength(24);
      for (const token of output) expect(banned).not.toContain(token);
    }
  });

  test("a large bias makes its token the only one", async () => {
    expect(await run({ temperature: 1, logitBias: [[300, 1e4]] }, { count: 5 })).toEqual([300, 300, 300, 300, 300]);
  });

  test("ids out of the vocabulary are ignored", async () => {
    const foreign = [
      [-1, 5],
      [1024, null],
      [2 ** 31, 5],
      [0.5, 5],
    ] as const;
    expect(await run({ temperature: 0, logitBias: foreign })).toEqual(await run({ temperature: 0 }));
  });

  test("ignoring the end of generation bans every token that means it", async () => {
    const question = await chatTokens(model, "What is the capital of France?");
    const ended = await generate(bench.executor, question, 30);
    expect(model.endOfGeneration.has(ended.at(-1) as number)).toBe(true);
    const endless = await generate(bench.executor, question, 30, { ignoreEndOfGeneration: true });
    expect(endless).toHaveLength(30);
    expect(endless.some((token) => model.endOfGeneration.has(token))).toBe(false);
  });

  test("when everything is banned the row fails with a coded error", async () => {
    const { executor } = bench;
    const logitBias = Array.from({ length: 1024 }, (_, id) => [id, null] as const);
    for (const sampling of [
      { temperature: 0, logitBias },
      { temperature: 1, logitBias },
    ]) {
      begin(executor, "mute", { sampling });
      const [result] = await step(executor, [row("mute", 0, 0, prompt)], [{ kind: "trim", slot: 0, keepTokens: 0 }]);
      executor.end("mute");
      expect(result).toMatchObject({ kind: "failed", error: { code: "no_token_left", status: 400 } });
    }
  });
});

describe("penalties", () => {
  test("a repeat penalty makes greedy output repeat itself less", async () => {
    const distinct = (tokens: readonly number[]) => new Set(tokens).size;
    expect(distinct(await run({ temperature: 0, repeatPenalty: 2 }, { count: 80 }))).toBeGreaterThan(distinct(await run({ temperature: 0 }, { count: 80 })));
  });

  test.each([["frequency"], ["presence"]] as const)("a strong %s penalty forbids every token that was there, in the prompt or since", async (kind) => {
    const output = await run({ temperature: 0, [`${kind}Penalty`]: 1000 }, { count: 80 });
    const seen = [...prompt, ...output];
    for (const [index, token] of output.entries()) expect(seen.slice(0, prompt.length + index)).not.toContain(token);
  });

  test("a penalty over the last few tokens forgets the ones before", async () => {
    const repeatLastN = 4;
    const output = await run({ temperature: 0, presencePenalty: 1000, repeatLastN }, { count: 80 });
    const seen = [...prompt, ...output];
    for (const [index, token] of output.entries()) expect(seen.slice(prompt.length + index - repeatLastN, prompt.length + index)).not.toContain(token);
    expect(new Set(output).size).toBeLessThan(output.length);
  });

  test("a penalty of no effect, or over no tokens, changes nothing", async () => {
    const plain = await run({ temperature: 0 });
    expect(await run({ temperature: 0, repeatPenalty: 1, frequencyPenalty: 0, presencePenalty: 0 })).toEqual(plain);
    expect(await run({ temperature: 0, repeatPenalty: 2, repeatLastN: 0 })).toEqual(plain);
  });

  test("DRY forbids what would make a repetition longer, up to a sequence breaker", async () => {
    const [a, b, c, d, other] = [300, 301, 302, 303, 304] as const;
    const repetition = [a, b, c, d, a, b, c, d, a, b, c];
    const logitBias = [
      [d, 200],
      [other, 190],
    ] as const;
    const next = async (sequenceBreakers?: readonly string[]) => {
      const dry = sequenceBreakers && { multiplier: 5, base: 2, allowedLength: 2, penaltyLastN: -1, sequenceBreakers };
      const [token] = await generate(bench.executor, repetition, 1, { sampling: { temperature: 0, logitBias, ...(dry && { dry }) } });
      return token;
    };
    expect(await next()).toBe(d);
    expect(await next([])).toBe(other);
    expect(await next([textOf(model, [c])])).toBe(d);
  });
});

describe("log probabilities", () => {
  test("come from the raw logits, whatever is sampled", async () => {
    const { executor } = bench;
    const read = async (sampling: Partial<SamplingParameters>) => {
      begin(executor, "l", { sampling, topLogprobs: 20, promptTokens: Int32Array.from(prompt) });
      const [result] = await step(executor, [row("l", 0, 0, prompt)], [{ kind: "trim", slot: 0, keepTokens: 0 }]);
      executor.end("l");
      return sampled(result).logprob;
    };
    const plain = await read({ temperature: 0 });
    expect(plain?.top[0]?.[1]).toBe(plain?.logprob);
    for (const sampling of [hot, { temperature: 0, repeatPenalty: 3 }, { temperature: 1, topK: 2, logitBias: [[5, 50] as const] }]) {
      expect((await read(sampling))?.top).toEqual(plain?.top);
    }
  });
});
