/** Random weights of a wanted spread, as the bytes of a tensor: deterministic, and cheap enough that the disk is the slower part. */
import type { GgufTensor, TensorType } from "./gguf-format.js";
import { tensorBytes, tensorTypes } from "./gguf-format.js";

/** How a tensor's weights are distributed: independent with mean 0, or all the same. */
export type WeightPlan = { readonly kind: "random"; readonly deviation: number } | { readonly kind: "constant"; readonly value: number };

/** A source of 32 random bits. */
export type RandomBits = () => number;

// A multiple of 4 and of every block size, so that a chunk is whole words and whole blocks.
const chunkBytes = 34 * 4 * 4096;
const halfTableBits = 11;

/**
 * The tensor's bytes in chunks that share one buffer: use each before the next.
 * The same seed and tensor name give the same bytes, whatever other tensors there are.
 */
export function* weightBytes(tensor: GgufTensor, plan: WeightPlan, seed: number): Iterable<Uint8Array> {
  const words = new Uint32Array(chunkBytes / 4);
  const bytes = new Uint8Array(words.buffer);
  const fill = plan.kind === "constant" ? constantFiller(tensor.type, plan.value) : randomFiller(tensor.type, plan.deviation, randomBits(seed, tensor.name));
  for (let left = tensorBytes(tensor); left > 0; left -= chunkBytes) {
    fill(words);
    yield left < chunkBytes ? bytes.subarray(0, left) : bytes;
  }
}

type Filler = (words: Uint32Array) => void;

function constantFiller(type: TensorType, value: number): Filler {
  if (type !== "f32") throw new Error(`Constant tensors are written as f32, not ${type}.`);
  return (words) => new Float32Array(words.buffer).fill(value);
}

function randomFiller(type: TensorType, deviation: number, next: RandomBits): Filler {
  if (type === "q8_0") return quantizedFiller(deviation, next);
  if (type === "f16") return halfFiller(deviation, next);
  return (words) => {
    const floats = new Float32Array(words.buffer);
    // Uniform on [-1, 1) has a deviation of 1/sqrt(3).
    const scale = (deviation * Math.sqrt(3)) / 2 ** 31;
    for (let i = 0; i < floats.length; i++) floats[i] = (next() | 0) * scale;
  };
}

/** Four weights a word: odd bytes from -127 to 127, which never are -128 and have a mean of exactly 0; then the blocks' scales over them. */
function quantizedFiller(deviation: number, next: RandomBits): Filler {
  const deviationOfOddBytes = Math.sqrt((256 ** 2 - 4) / 12);
  const scale = toHalf(deviation / deviationOfOddBytes);
  const { blockBytes } = tensorTypes.q8_0;
  return (words) => {
    for (let i = 0; i < words.length; i++) words[i] = next() | 0x01010101;
    const bytes = new Uint8Array(words.buffer);
    for (let block = 0; block < bytes.length; block += blockBytes) {
      bytes[block] = scale & 0xff;
      bytes[block + 1] = scale >> 8;
    }
  };
}

/** Two weights a word, drawn from a table of equally spaced halves. */
function halfFiller(deviation: number, next: RandomBits): Filler {
  const size = 2 ** halfTableBits;
  const reach = deviation * Math.sqrt(3);
  const table = Uint16Array.from({ length: size }, (_, i) => toHalf(reach * ((2 * i + 1) / size - 1)));
  const mask = size - 1;
  return (words) => {
    for (let i = 0; i < words.length; i++) {
      const bits = next();
      words[i] = (table[bits & mask] ?? 0) | ((table[(bits >>> 16) & mask] ?? 0) << 16);
    }
  };
}

/** The bits of the half-precision number nearest to `value`; ties go to the even one. Throws when it is out of range. */
export function toHalf(value: number): number {
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const magnitude = Math.abs(value);
  // Below 2^-14 the exponent stays and the step is 2^-24.
  const exponent = Math.max(magnitude === 0 ? -14 : Math.floor(Math.log2(magnitude)), -14);
  const steps = roundHalfToEven(magnitude / 2 ** (exponent - 10));
  const bits = (exponent + 14) * 1024 + steps;
  if (!(bits < 0x7c00)) throw new RangeError(`${value} has no half-precision form.`);
  return sign | bits;
}

function roundHalfToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

/** A generator with a period of 2^128 - 1 (Marsaglia's xorshift), started from a number and a name. */
export function randomBits(seed: number, name: string): RandomBits {
  let [x, y, z, w] = startState(seed, name);
  return () => {
    const t = x ^ (x << 11);
    x = y;
    y = z;
    z = w;
    w = w ^ (w >>> 19) ^ t ^ (t >>> 8);
    return w >>> 0;
  };
}

function startState(seed: number, name: string): [number, number, number, number] {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(`${seed}:${name}`)) hash = Math.imul(hash ^ byte, 0x01000193);
  const word = (): number => {
    hash = (hash + 0x9e3779b9) | 0;
    const mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    const again = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
    return again ^ (again >>> 16);
  };
  // All four zero would stay zero for ever.
  return [word(), word(), word(), word() | 1];
}
