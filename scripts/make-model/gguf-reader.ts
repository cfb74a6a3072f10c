/** Reads the header of a GGUF file: metadata entries as raw bytes to copy, and the list of tensors. */
import { type GgufEntry, ggufAlignment, ggufMagic, valueType } from "./gguf-format.js";

/** A tensor as the file describes it, whatever its type. */
export interface TensorRecord {
  readonly name: string;
  readonly dimensions: readonly number[];
  readonly typeTag: number;
  /** Where its data begins, in bytes from the beginning of the file. */
  readonly offset: number;
}

export interface GgufHeader {
  readonly version: number;
  readonly entries: ReadonlyMap<string, GgufEntry>;
  readonly tensors: readonly TensorRecord[];
}

const fixedBytes: Readonly<Record<number, number>> = {
  [valueType.uint8]: 1,
  [valueType.int8]: 1,
  [valueType.bool]: 1,
  [valueType.uint16]: 2,
  [valueType.int16]: 2,
  [valueType.uint32]: 4,
  [valueType.int32]: 4,
  [valueType.float32]: 4,
  [valueType.uint64]: 8,
  [valueType.int64]: 8,
  [valueType.float64]: 8,
};

/** Parses the bytes of a file of GGUF version 2 or 3. Throws when they are something else or end too early. */
export function readGgufHeader(file: Uint8Array): GgufHeader {
  const bytes = Buffer.from(file.buffer, file.byteOffset, file.byteLength);
  if (bytes.length < 24 || bytes.readUInt32LE(0) !== ggufMagic) throw new Error("This is not a GGUF file.");
  const version = bytes.readUInt32LE(4);
  if (version < 2 || version > 3) throw new Error(`GGUF version ${version} is not supported; 2 and 3 are.`);
  const cursor = new Cursor(bytes, 8);
  const tensorCount = cursor.uint64();
  const entries = readEntries(cursor, cursor.uint64());
  const tensors = Array.from({ length: tensorCount }, () => readTensor(cursor));
  const dataStart = alignUp(cursor.position, alignmentOf(entries));
  return { version, entries, tensors: tensors.map((tensor) => ({ ...tensor, offset: dataStart + tensor.offset })) };
}

/** The text of a string entry; undefined when there is no such entry or it is no string. */
export function readString(header: GgufHeader, key: string): string | undefined {
  const value = typedValue(header, key, valueType.string);
  return value?.subarray(8).toString("utf8");
}

/** The number in a uint32 entry; undefined when there is none. */
export function readUint32(header: GgufHeader, key: string): number | undefined {
  return typedValue(header, key, valueType.uint32)?.readUInt32LE(0);
}

/** How many elements an array entry has; undefined when there is none. */
export function readArrayLength(header: GgufHeader, key: string): number | undefined {
  const value = typedValue(header, key, valueType.array);
  return value === undefined ? undefined : Number(value.readBigUInt64LE(4));
}

function typedValue(header: GgufHeader, key: string, type: number): Buffer | undefined {
  const encoded = header.entries.get(key)?.encoded;
  if (encoded === undefined) return undefined;
  const bytes = Buffer.from(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  return bytes.readUInt32LE(0) === type ? bytes.subarray(4) : undefined;
}

function readEntries(cursor: Cursor, count: number): Map<string, GgufEntry> {
  const entries = new Map<string, GgufEntry>();
  for (let i = 0; i < count; i++) {
    const key = cursor.string();
    const start = cursor.position;
    cursor.skipValue(cursor.uint32());
    entries.set(key, { key, encoded: cursor.slice(start) });
  }
  return entries;
}

function readTensor(cursor: Cursor): TensorRecord {
  const name = cursor.string();
  const dimensions = Array.from({ length: cursor.uint32() }, () => cursor.uint64());
  return { name, dimensions, typeTag: cursor.uint32(), offset: cursor.uint64() };
}

function sizeOf(type: number): number {
  const size = fixedBytes[type];
  if (size === undefined) throw new Error(`A metadata value has the unknown type ${type}.`);
  return size;
}

function alignmentOf(entries: ReadonlyMap<string, GgufEntry>): number {
  const encoded = entries.get("general.alignment")?.encoded;
  return encoded === undefined ? ggufAlignment : Buffer.from(encoded).readUInt32LE(4);
}

function alignUp(value: number, alignment: number): number {
  return Math.ceil(value / alignment) * alignment;
}

/** A place in the file that moves on with each read. Reads past the end throw a RangeError, as Buffer's own do. */
class Cursor {
  constructor(
    private readonly bytes: Buffer,
    public position: number,
  ) {}

  uint32(): number {
    const value = this.bytes.readUInt32LE(this.position);
    this.position += 4;
    return value;
  }

  uint64(): number {
    const value = this.bytes.readBigUInt64LE(this.position);
    this.position += 8;
    return Number(value);
  }

  string(): string {
    const length = this.uint64();
    const start = this.position;
    this.skip(length);
    return this.bytes.toString("utf8", start, this.position);
  }

  /** The bytes from `start` to here, not copied. */
  slice(start: number): Buffer {
    return this.bytes.subarray(start, this.position);
  }

  skipValue(type: number): void {
    if (type === valueType.array) this.skipArray(this.uint32(), this.uint64());
    else if (type === valueType.string) this.skip(this.uint64());
    else this.skip(sizeOf(type));
  }

  private skipArray(type: number, length: number): void {
    if (type !== valueType.string && type !== valueType.array) this.skip(sizeOf(type) * length);
    else for (let i = 0; i < length; i++) this.skipValue(type);
  }

  private skip(count: number): void {
    if (this.position + count > this.bytes.length) throw new RangeError("The GGUF file ends in the middle of its header.");
    this.position += count;
  }
}
