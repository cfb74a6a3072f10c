/** Reads the structure of a GGUF file: its metadata and what its tensors add up to. Meaning is given to it in `gguf-header.ts`. */
import { invalidGguf, notGguf, truncatedGguf } from "../errors.js";
import { type ByteCursor, withByteCursor } from "./byte-cursor.js";
import { type TensorType, tensorType } from "./gguf-types.js";

/** A metadata value. Of a list that is too long to be a setting (the vocabulary) only the length is kept. */
export type GgufValue = number | boolean | string | readonly (number | boolean | string)[] | SkippedList;

export interface SkippedList {
  readonly skippedItems: number;
}

export interface GgufStructure {
  readonly path: string;
  readonly fileBytes: number;
  readonly version: number;
  readonly metadata: ReadonlyMap<string, GgufValue>;
  /** Bytes before the tensor data, padding included. */
  readonly headerBytes: number;
  readonly tensorCount: number;
  /** Bytes of the tensors in this file, without padding between them. */
  readonly tensorBytes: number;
  readonly parameterCount: number;
  readonly tensorBytesByType: ReadonlyMap<string, number>;
}

// Far above what any model has, far below what could exhaust memory or time.
const limits = { metadataEntries: 65_536, tensors: 1_048_576, keyBytes: 65_535, stringBytes: 16 * 1024 * 1024, tensorNameBytes: 1024, dimensions: 4 };
const keptListItems = 1024;
const defaultAlignment = 32;

const valueBytes = [1, 1, 2, 2, 4, 4, 4, 1, undefined, undefined, 8, 8, 8] as const;
const stringType = 8;
const listType = 9;
const lfsPointerStart = "version https://git-lfs";

/** Reads a file's header. Throws `model_file_missing`, `not_gguf`, `truncated_gguf` or `invalid_gguf`; never trusts a size it reads. */
export function readGgufStructure(path: string): GgufStructure {
  return withByteCursor(path, (cursor) => {
    const version = readPreamble(cursor);
    const tensorCount = readCount(cursor, "tensors", limits.tensors);
    const metadata = readMetadata(cursor, readCount(cursor, "metadata entries", limits.metadataEntries));
    const tensors = readTensorTable(cursor, tensorCount);
    const headerBytes = alignUp(cursor.position(), readAlignment(cursor, metadata));
    const endOfData = tensorCount === 0 ? cursor.position() : headerBytes + tensors.dataBytes;
    if (endOfData > cursor.fileBytes) throw truncatedGguf({ path, fileBytes: cursor.fileBytes, neededBytes: endOfData });
    const { tensorBytes, parameterCount, tensorBytesByType } = tensors;
    return { path, fileBytes: cursor.fileBytes, version, metadata, headerBytes, tensorCount, tensorBytes, parameterCount, tensorBytesByType };
  });
}

function readPreamble(cursor: ByteCursor): number {
  const { path, fileBytes } = cursor;
  if (fileBytes === 0) throw notGguf({ path, reason: "it is empty" });
  const magic = cursor.text(Math.min(4, fileBytes));
  if (magic !== "GGUF") {
    const start = magic + cursor.text(Math.min(lfsPointerStart.length, fileBytes) - cursor.position());
    if (start === lfsPointerStart) throw notGguf({ path, reason: "it is a Git LFS pointer; fetch the file itself with 'git lfs pull'" });
    throw notGguf({ path, reason: `it begins with ${quoted(magic)} where a GGUF file has "GGUF"` });
  }
  const version = cursor.u32();
  if (version === 1) throw notGguf({ path, reason: "it has version 1 of the format, which llama.cpp no longer reads; convert it again" });
  if (version !== 0 && (version & 0xffff) === 0) throw notGguf({ path, reason: "it was written for a big-endian machine" });
  if (version === 0 || version > 3) throw notGguf({ path, reason: `it has version ${version} of the format, this release reads 2 and 3` });
  return version;
}

/** A name from a file, which may be anything, as a message of one line can show it. */
function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80)).replace(/[\u007f-\u009f\u2028\u2029]/g, "?");
}

function readCount(cursor: ByteCursor, what: string, limit: number): number {
  const count = cursor.u64();
  if (count > limit) throw invalidGguf({ path: cursor.path, reason: `it claims ${count} ${what}, more than ${limit}` });
  return count;
}

function readMetadata(cursor: ByteCursor, count: number): Map<string, GgufValue> {
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < count; index += 1) {
    const key = readString(cursor, limits.keyBytes, "a metadata key");
    if (metadata.has(key)) throw invalidGguf({ path: cursor.path, reason: `the metadata key ${quoted(key)} appears twice` });
    const type = cursor.u32();
    metadata.set(key, type === listType ? readList(cursor, key) : readScalar(cursor, type, key));
  }
  return metadata;
}

function readString(cursor: ByteCursor, limitBytes: number, what: string): string {
  const length = cursor.u64();
  // A length past the end of the file is reported as truncation by the cursor; this limit is for files that really are that long.
  if (length > limitBytes && length <= cursor.fileBytes - cursor.position())
    throw invalidGguf({ path: cursor.path, reason: `${what} has ${length} bytes, more than ${limitBytes}` });
  return cursor.text(length);
}

function readScalar(cursor: ByteCursor, type: number, key: string): number | boolean | string {
  switch (type) {
    case 0:
      return cursor.u8();
    case 1:
      return cursor.i8();
    case 2:
      return cursor.u16();
    case 3:
      return cursor.i16();
    case 4:
      return cursor.u32();
    case 5:
      return cursor.i32();
    case 6:
      return cursor.f32();
    case 7:
      return cursor.u8() !== 0;
    case stringType:
      return readString(cursor, limits.stringBytes, `the value of ${quoted(key)}`);
    case 10:
      return cursor.u64();
    case 11:
      return cursor.i64();
    case 12:
      return cursor.f64();
    default:
      throw invalidGguf({ path: cursor.path, reason: `the metadata key ${quoted(key)} has the unknown type ${type}` });
  }
}

function readList(cursor: ByteCursor, key: string): GgufValue {
  const type = cursor.u32();
  const count = cursor.u64();
  const itemBytes = type === stringType ? 8 : valueBytes[type]; // a string has at least its length
  if (itemBytes === undefined) throw invalidGguf({ path: cursor.path, reason: `the list ${quoted(key)} has items of the unknown type ${type}` });
  const neededBytes = cursor.position() + count * itemBytes;
  if (neededBytes > cursor.fileBytes) throw truncatedGguf({ path: cursor.path, fileBytes: cursor.fileBytes, neededBytes });
  if (count <= keptListItems) return Array.from({ length: count }, () => readScalar(cursor, type, key));
  if (type === stringType) for (let index = 0; index < count; index += 1) cursor.skip(cursor.u64());
  else cursor.skip(count * itemBytes);
  return { skippedItems: count };
}

interface TensorTable {
  /** From the begin of the data to the end of its last tensor. */
  readonly dataBytes: number;
  readonly tensorBytes: number;
  readonly parameterCount: number;
  readonly tensorBytesByType: ReadonlyMap<string, number>;
}

function readTensorTable(cursor: ByteCursor, count: number): TensorTable {
  const tensorBytesByType = new Map<string, number>();
  let dataBytes = 0;
  let tensorBytes = 0;
  let parameterCount = 0;
  for (let index = 0; index < count; index += 1) {
    const { type, elements, bytes, offset } = readTensor(cursor);
    dataBytes = Math.max(dataBytes, offset + bytes);
    tensorBytes += bytes;
    parameterCount += elements;
    tensorBytesByType.set(type.name, (tensorBytesByType.get(type.name) ?? 0) + bytes);
  }
  return { dataBytes, tensorBytes, parameterCount, tensorBytesByType };
}

function readTensor(cursor: ByteCursor): { type: TensorType; elements: number; bytes: number; offset: number } {
  const invalid = (reason: string) => invalidGguf({ path: cursor.path, reason: `the tensor ${quoted(name)} ${reason}` });
  const name = readString(cursor, limits.tensorNameBytes, "a tensor name");
  const dimensions = cursor.u32();
  if (dimensions > limits.dimensions) throw invalid(`has ${dimensions} dimensions, more than ${limits.dimensions}`);
  const shape = Array.from({ length: dimensions }, () => cursor.u64());
  const typeNumber = cursor.u32();
  const type = tensorType(typeNumber);
  if (type === undefined) throw invalid(`has the type ${typeNumber}, which this release does not know`);
  const elements = shape.reduce((product, size) => product * size, 1);
  if ((shape[0] ?? 1) % type.blockElements !== 0) throw invalid(`has rows of ${shape[0]} elements, which ${type.name} cannot hold`);
  const bytes = (elements / type.blockElements) * type.blockBytes;
  const offset = cursor.u64();
  if (!Number.isSafeInteger(bytes + offset)) throw invalid("has a size or a place that no file can have");
  return { type, elements, bytes, offset };
}

function readAlignment(cursor: ByteCursor, metadata: ReadonlyMap<string, GgufValue>): number {
  const value = metadata.get("general.alignment") ?? defaultAlignment;
  const isPowerOfTwo = typeof value === "number" && value > 0 && value <= 2 ** 30 && (value & (value - 1)) === 0;
  if (!isPowerOfTwo) throw invalidGguf({ path: cursor.path, reason: "'general.alignment' is not a power of two" });
  return value;
}

function alignUp(position: number, alignment: number): number {
  return Math.ceil(position / alignment) * alignment;
}
