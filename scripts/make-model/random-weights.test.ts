import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { type GgufTensor, type TensorType, tensorBytes, tensorTypes, weightCount } from "./gguf-format.js";
import { randomBits, toHalf, type WeightPlan, weightBytes } from "./random-weights.js";

function wholeTensor(tensor: GgufTensor, plan: WeightPlan, seed: number): Buffer {
  // Each chunk is copied: the next one overwrites it.
  return Buffer.concat(Array.from(weightBytes(tensor, plan, seed), (chunk) => Buffer.from(chunk)));
}

/** The value of a half-precision number, read by the definition of the format. */
function fromHalf(bits: number): number {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const magnitude = exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

/** The weights in a tensor's bytes. */
function decode(type: TensorType, bytes: Buffer): number[] {
  if (type === "f32") return Array.from({ length: bytes.length / 4 }, (_, i) => bytes.readFloatLE(4 * i));
  if (type === "f16") return Array.from({ length: bytes.length / 2 }, (_, i) => fromHalf(bytes.readUInt16LE(2 * i)));
  const { blockBytes, blockWeights } = tensorTypes.q8_0;
  return Array.from({ length: bytes.length / blockBytes }, (_, block) => {
    const scale = fromHalf(bytes.readUInt16LE(block * blockBytes));
    return Array.from({ length: blockWeights }, (_, i) => scale * bytes.readInt8(block * blockBytes + 2 + i));
  }).flat();
}

describe("random weights", () => {
  test.each<TensorType>(["q8_0", "f16", "f32"])("of type %s have the wanted deviation and a mean of zero", (type) => {
    const tensor: GgufTensor = { name: "w", type, dimensions: [1024, 700] };
    const weights = decode(type, wholeTensor(tensor, { kind: "random", deviation: 0.05 }, 7));
    expect(weights).toHaveLength(weightCount(tensor));
    const mean = weights.reduce((sum, weight) => sum + weight, 0) / weights.length;
    const deviation = Math.sqrt(weights.reduce((sum, weight) => sum + weight ** 2, 0) / weights.length);
    // 700k draws: the standard error of the mean is 0.00006, of the deviation less.
    expect(Math.abs(mean)).toBeLessThan(0.0005);
    expect(Math.abs(deviation - 0.05)).toBeLessThan(0.0005);
    expect(Math.max(...weights.slice(0, 50_000))).toBeLessThanOrEqual(0.05 * Math.sqrt(3) * 1.01);
  });

  property.prop([fc.constantFrom<TensorType>("q8_0", "f16"), fc.nat(1000), fc.integer({ min: 1, max: 600 })])(
    "come out alike for the same seed and name, whatever was written before, and fill the tensor exactly",
    (type, seed, rows) => {
      const tensor: GgufTensor = { name: "w", type, dimensions: [96, rows] };
      const plan: WeightPlan = { kind: "random", deviation: 0.1 };
      const first = wholeTensor(tensor, plan, seed);
      wholeTensor({ ...tensor, name: "other" }, plan, seed);
      expect(wholeTensor(tensor, plan, seed).equals(first)).toBe(true);
      expect(first.length).toBe(tensorBytes(tensor));
      expect(wholeTensor(tensor, plan, seed + 1).equals(first)).toBe(false);
      expect(wholeTensor({ ...tensor, name: "x" }, plan, seed).equals(first)).toBe(false);
    },
  );

  test("do not repeat from chunk to chunk", () => {
    const chunks = Array.from(weightBytes({ name: "w", type: "q8_0", dimensions: [1024, 1200] }, { kind: "random", deviation: 1 }, 1), (chunk) =>
      Buffer.from(chunk),
    );
    expect(chunks.length).toBeGreaterThan(2);
    expect(chunks[1]?.equals(chunks[0] ?? Buffer.alloc(0))).toBe(false);
  });

  test("of a constant tensor are that constant", () => {
    expect(decode("f32", wholeTensor({ name: "n", type: "f32", dimensions: [5] }, { kind: "constant", value: 1.5 }, 1))).toEqual([1.5, 1.5, 1.5, 1.5, 1.5]);
  });
});

describe("toHalf", () => {
  test("gives every finite half back", () => {
    for (let bits = 0; bits < 0x7c00; bits++) {
      expect(toHalf(fromHalf(bits))).toBe(bits);
      expect(toHalf(fromHalf(bits | 0x8000))).toBe(bits | 0x8000);
    }
  });

  property.prop([fc.double({ min: -60_000, max: 60_000, noNaN: true })])("rounds to a neighbour, never farther", (value) => {
    const bits = toHalf(value);
    const error = Math.abs(fromHalf(bits) - value);
    const magnitudeBits = bits & 0x7fff;
    const neighbours = [magnitudeBits - 1, magnitudeBits + 1].filter((b) => b >= 0 && b < 0x7c00).map((b) => fromHalf(b | (bits & 0x8000)));
    for (const neighbour of neighbours) expect(error).toBeLessThanOrEqual(Math.abs(neighbour - value));
  });

  test("refuses what is too large", () => {
    expect(() => toHalf(65_520)).toThrow(RangeError);
    expect(() => toHalf(Number.NaN)).toThrow(RangeError);
  });
});

test("randomBits sets every bit about half of the time", () => {
  const next = randomBits(3, "bits");
  const counts = new Array<number>(32).fill(0);
  const draws = 20_000;
  for (let i = 0; i < draws; i++) {
    const value = next();
    for (let bit = 0; bit < 32; bit++) counts[bit] = (counts[bit] ?? 0) + ((value >>> bit) & 1);
  }
  // Seven standard deviations.
  for (const count of counts) expect(Math.abs(count - draws / 2)).toBeLessThan(500);
});
