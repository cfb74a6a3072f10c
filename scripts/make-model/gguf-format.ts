/** What the GGUF file format fixes: value types, tensor types, and how values are encoded. Little-endian throughout, as the format is. */

export const ggufMagic = 0x46554747; // "GGUF"
export const ggufVersion = 3;
/** Tensor data begins at multiples of this many bytes; the format's default, so that no `general.alignment` is needed. */
export const ggufAlignment = 32;

/** Type tags of metadata values. */
export const valueType = {
  uint8: 0,
  int8: 1,
  uint16: 2,
  int16: 3,
  uint32: 4,
  int32: 5,
  float32: 6,
  bool: 7,
  string: 8,
  array: 9,
  uint64: 10,
  int64: 11,
  float64: 12,
} as const;

/** How the weights of a tensor are stored. */
export type TensorType = "f32" | "f16" | "q8_0";

/** `tag` is ggml's number of the type; a block of `blockWeights` weights takes `blockBytes` bytes. */
export const tensorTypes: Readonly<Record<TensorType, { tag: number; blockWeights: number; blockBytes: number }>> = {
  f32: { tag: 0, blockWeights: 1, blockBytes: 4 },
  f16: { tag: 1, blockWeights: 1, blockBytes: 2 },
  // A half-precision scale, then 32 signed bytes.
  q8_0: { tag: 8, blockWeights: 32, blockBytes: 34 },
};

/** A metadata entry with its value as it stands in the file: type tag, then the value's bytes. */
export interface GgufEntry {
  readonly key: string;
  readonly encoded: Uint8Array;
}

export interface GgufTensor {
  readonly name: string;
  /** Fastest-varying dimension first, as ggml counts: the length of a row, then the number of rows. */
  readonly dimensions: readonly number[];
  readonly type: TensorType;
}

export function weightCount(tensor: GgufTensor): number {
  return tensor.dimensions.reduce((product, dimension) => product * dimension, 1);
}

/** Bytes of the tensor's data, without the padding after it. Throws when its rows are no whole number of blocks. */
export function tensorBytes(tensor: GgufTensor): number {
  const { blockWeights, blockBytes } = tensorTypes[tensor.type];
  const rowWeights = tensor.dimensions[0] ?? 0;
  if (rowWeights % blockWeights !== 0) throw new Error(`${tensor.name}: rows of ${rowWeights} weights are no whole number of ${tensor.type} blocks.`);
  return (weightCount(tensor) / blockWeights) * blockBytes;
}

export function paddedBytes(bytes: number): number {
  return Math.ceil(bytes / ggufAlignment) * ggufAlignment;
}

export function stringEntry(key: string, value: string): GgufEntry {
  return { key, encoded: Buffer.concat([uint32(valueType.string), encodeString(value)]) };
}

export function uint32Entry(key: string, value: number): GgufEntry {
  return { key, encoded: Buffer.concat([uint32(valueType.uint32), uint32(value)]) };
}

export function float32Entry(key: string, value: number): GgufEntry {
  const bytes = Buffer.alloc(4);
  bytes.writeFloatLE(value);
  return { key, encoded: Buffer.concat([uint32(valueType.float32), bytes]) };
}

/** A length in bytes, then UTF-8. */
export function encodeString(text: string): Buffer {
  const bytes = Buffer.from(text, "utf8");
  return Buffer.concat([uint64(bytes.length), bytes]);
}

export function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}

export function uint64(value: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
}
