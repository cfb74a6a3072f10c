import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { argmax, largestIndices } from "./largest.js";
import { createLogitBiases } from "./logit-biases.js";
import { tokenLogprobs } from "./logprobs.js";
import { drawFraction, drawSeed } from "./seed.js";
import { createSoftmaxDraw, expOfNegative, sumOfExponentials } from "./softmax.js";

const arbitraryLogits = fc.array(fc.float({ min: -50, max: 50, noNaN: true }), { minLength: 1, maxLength: 200 }).map((values) => Float32Array.from(values));

describe("argmax", () => {
  property.prop([arbitraryLogits])("is the lowest index of the largest value", (logits) => {
    expect(argmax(logits)).toBe(logits.indexOf(Math.max(...logits)));
  });

  test("passes over what is no number, and finds nothing where nothing can be chosen", () => {
    expect(argmax(Float32Array.of(Number.NaN, 1, Number.NaN))).toBe(1);
    expect(argmax(Float32Array.of(-Infinity, -Infinity))).toBe(-1);
  });
});

/** Values of which many are equal, none a number, or no token's. */
const arbitraryValues = fc
  .array(fc.oneof(fc.integer({ min: -3, max: 3 }), fc.float({ noNaN: true }), fc.constantFrom(Number.NaN, -Infinity)), { maxLength: 100 })
  .map((values) => Float32Array.from(values));

describe("the largest indices", () => {
  property.prop([arbitraryValues, fc.integer({ min: 1, max: 20 })])("are the first of all in order", (values, count) => {
    const choosable = [...values.keys()].filter((index) => (values[index] as number) > -Infinity);
    const sorted = choosable.sort((a, b) => ((values[a] as number) === (values[b] as number) ? a - b : (values[b] as number) - (values[a] as number)));
    expect(largestIndices(values, count)).toEqual(sorted.slice(0, count));
  });
});

describe("log probabilities", () => {
  property.prop([arbitraryLogits, fc.nat(), fc.integer({ min: 0, max: 20 })])("are those of the definition", (logits, choice, count) => {
    const token = choice % logits.length;
    const values = [...logits];
    const largest = Math.max(...values);
    const logSum = largest + Math.log(values.reduce((sum, value) => sum + Math.exp(value - largest), 0));
    const { logprob, top } = tokenLogprobs(logits, token, count);
    expect(Math.abs(logprob - (values[token] as number) + logSum)).toBeLessThan(1e-8);
    const ids = [...values.keys()].sort((a, b) => (values[b] as number) - (values[a] as number) || a - b);
    expect(top.map(([id]) => id)).toEqual(ids.slice(0, count));
    for (const [id, value] of top) expect(Math.abs(value - (values[id] as number) + logSum)).toBeLessThan(1e-8);
  });

  property.prop([arbitraryLogits])("of all tokens sum to one, are sorted, and hold the chosen one's", (logits) => {
    const { logprob, top } = tokenLogprobs(logits, 0, logits.length);
    expect(top).toHaveLength(logits.length);
    expect(top.reduce((sum, [, value]) => sum + Math.exp(value), 0)).toBeCloseTo(1, 6);
    for (let place = 1; place < top.length; place++) expect(top[place]?.[1]).toBeLessThanOrEqual(top[place - 1]?.[1] as number);
    expect(top.find(([id]) => id === 0)?.[1]).toBe(logprob);
  });

  property.prop([arbitraryLogits, fc.integer({ min: 0, max: 20 })])("of the likeliest few are the first of all", (logits, count) => {
    const all = tokenLogprobs(logits, 0, logits.length).top;
    expect(tokenLogprobs(logits, 0, count).top).toEqual(all.slice(0, count));
  });

  test("are always numbers, also of impossible tokens", () => {
    const { logprob, top } = tokenLogprobs(Float32Array.of(-Infinity, 0, -Infinity), 0, 3);
    expect(logprob).toBe(-9999);
    for (const [, value] of top) expect(Number.isFinite(value)).toBe(true);
  });
});

describe("logit biases", () => {
  property.prop([
    arbitraryLogits,
    fc.array(fc.tuple(fc.integer({ min: -5, max: 250 }), fc.option(fc.float({ noNaN: true, noDefaultInfinity: true })))),
    fc.array(fc.nat(220)),
  ])("are taken back exactly", (logits, biases, banned) => {
    const before = logits.slice();
    const restore = createLogitBiases(biases, banned, logits.length).apply(logits);
    restore();
    expect(logits).toEqual(before);
  });

  test("null and bans make a token impossible, other values are added, foreign ids are ignored", () => {
    const logits = Float32Array.of(1, 2, 3, 4);
    const biases = createLogitBiases(
      [
        [0, null],
        [1, 5],
        [99, 1],
        [-1, 1],
      ],
      [3],
      4,
    );
    biases.apply(logits);
    expect([...logits]).toEqual([-Infinity, 7, 3, -Infinity]);
    expect([0, 1, 2, 3].filter(biases.bans)).toEqual([0, 3]);
  });
});

const arbitrarySeed = fc.nat(2 ** 32 - 1);

describe("the seed of a draw", () => {
  property.prop([arbitrarySeed, fc.nat(100_000)])("is a function of seed and position, and no other draw's", (seed, position) => {
    expect(drawSeed(seed, position, "token")).toBe(drawSeed(seed, position, "token"));
    expect(drawSeed(seed, position, "token")).not.toBe(drawSeed(seed, position + 1, "token"));
    expect(drawSeed(seed, position, "token")).not.toBe(drawSeed(seed, position, "xtc"));
  });

  property.prop([arbitrarySeed])("is a 32-bit number and never the one that means random", (seed) => {
    const drawn = drawSeed(seed, 0, "token");
    expect(Number.isInteger(drawn) && drawn >= 0 && drawn < 0xffffffff).toBe(true);
  });

  property.prop([arbitrarySeed, fc.nat(31), fc.nat(100_000)])("counts every bit of the request's seed", (seed, bit, position) => {
    expect(drawSeed((seed ^ (1 << bit)) >>> 0, position, "token")).not.toBe(drawSeed(seed, position, "token"));
  });
});

describe("exponentials", () => {
  property.prop([fc.double({ min: -80, max: 0, noNaN: true })])("are right to nine digits", (x) => {
    expect(Math.abs(expOfNegative(x) / Math.exp(x) - 1)).toBeLessThan(1e-9);
  });

  test("of what is no number or too small are nothing", () => {
    for (const x of [Number.NaN, -Infinity, -1000, -88]) expect(expOfNegative(x)).toBe(0);
    expect(expOfNegative(0)).toBe(1);
  });

  property.prop([arbitraryLogits])("sum up to at least one and at most the number of tokens", (logits) => {
    const sum = sumOfExponentials(logits, Math.max(...logits));
    expect(sum).toBeGreaterThanOrEqual(1);
    expect(sum).toBeLessThanOrEqual(logits.length * (1 + 1e-9));
  });
});

describe("a draw from the whole distribution", () => {
  test("comes out as often as it should", () => {
    const logits = Float32Array.from({ length: 3000 }, (_, id) => (id % 600 === 0 ? Math.log(1 + id / 600) : -Infinity)); // weights 1 to 5
    const softmax = createSoftmaxDraw(logits.length);
    const draws = 30_000;
    const counts = new Map<number, number>();
    for (let position = 0; position < draws; position++) {
      const token = softmax.draw(logits, 1, drawFraction(42, position));
      counts.set(token, (counts.get(token) ?? 0) + 1);
    }
    expect([...counts.keys()].sort((a, b) => a - b)).toEqual([0, 600, 1200, 1800, 2400]);
    for (const [token, count] of counts) {
      const probability = (1 + token / 600) / 15;
      const deviation = Math.sqrt(draws * probability * (1 - probability));
      expect(Math.abs(count - draws * probability)).toBeLessThan(5 * deviation);
    }
  });

  property.prop([arbitraryLogits, fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true }), fc.double({ min: 0.01, max: 10, noNaN: true })])(
    "is a possible token at every fraction and temperature",
    (logits, fraction, temperature) => {
      const token = createSoftmaxDraw(logits.length).draw(logits, temperature, fraction);
      expect(token).toBeGreaterThanOrEqual(0);
      expect(token).toBeLessThan(logits.length);
    },
  );

  property.prop([fc.integer({ min: 1, max: 3000 }), fc.double({ min: 0, max: 1, noNaN: true, maxExcluded: true })])(
    "never is a banned token",
    (size, fraction) => {
      const logits = new Float32Array(size).fill(-Infinity);
      const softmax = createSoftmaxDraw(size);
      expect(softmax.draw(logits, 1, fraction)).toBe(-1);
      logits[size >> 1] = -3;
      expect(softmax.draw(logits, 1, fraction)).toBe(size >> 1);
    },
  );
});
