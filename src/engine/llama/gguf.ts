/** Reads the head of a GGUF file in plain JavaScript: to refuse what is none before native code sees it, and to plan before a load. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { modelFileUnreadable, modelNotGguf, modelTruncated, modelUnsupported } from "../../errors.js";

export interface GgufSummary {
  readonly version: number;
  readonly fileBytes: number;
  readonly tensorCount: number;
  readonly architecture: string | undefined;
  /** Scalars, strings and short lists of numbers; the vocabulary and other long lists are left out. */
  readonly metadata: ReadonlyMap<string, GgufValue>;
}

export type GgufScalar = number | bigint | boolean;
export type GgufValue = string | GgufScalar | readonly GgufScalar[];

/**
 * Checks a model file's head and returns its metadata. Reads no tensor data.
 * Throws coded errors: unreadable, not a GGUF, of an unknown GGUF version, or cut off.
 */
export function readGguf(path: string): GgufSummary {
  const file = openFile(path);
  try {
    const fileBytes = fstatSync(file).size;
    const reader = createReader(file, fileBytes, path);
    const version = readVersion(reader, path);
    const tensorCount = reader.count();
    const keyCount = reader.count();
    const metadata = readMetadata(reader, keyCount, path);
    checkTensors(reader, tensorCount, metadata, path);
    const architecture = metadata.get("general.architecture");
    return { version, fileBytes, tensorCount, architecture: typeof architecture === "string" ? architecture : undefined, metadata };
  } finally {
    closeSync(file);
  }
}

function openFile(path: string): number {
  try {
    const file = openSync(path, "r");
    if (fstatSync(file).isFile()) return file;
    closeSync(file);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "ENOENT" ? "there is no such file." : code === "EACCES" ? "permission denied." : message;
    throw modelFileUnreadable({ path, reason }, { cause: error });
  }
  throw modelFileUnreadable({ path, reason: "it is not a file." });
}

function readVersion(reader: Reader, path: string): number {
  if (reader.fileBytes === 0) throw modelNotGguf({ path, reason: "it is empty." });
  const start = reader.bytes(Math.min(reader.fileBytes, 24)).toString("latin1");
  if (start.startsWith("version https://git-lfs")) {
    throw modelNotGguf({ path, reason: "it is a Git LFS pointer; fetch the file itself with 'git lfs pull'." });
  }
  if (!"GGUF".startsWith(start.slice(0, 4))) throw modelNotGguf({ path, reason: "it does not begin with the letters GGUF." });
  reader.seek(4);
  const version = reader.uint32();
  if (version !== 2 && version !== 3) {
    const isBigEndian = version === 0x02000000 || version === 0x03000000;
    throw modelUnsupported({ path, reason: isBigEndian ? "it is a big-endian GGUF." : `GGUF version ${version} is unknown; 2 and 3 can be read.` });
  }
  return version;
}

const stringType = 8;
const arrayType = 9;
/** Bytes of the scalar types 0 to 12: u8, i8, u16, i16, u32, i32, f32, bool, (string), (array), u64, i64, f64. */
const scalarBytes = [1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8] as const;

function readMetadata(reader: Reader, keyCount: number, path: string): Map<string, GgufValue> {
  const metadata = new Map<string, GgufValue>();
  for (let index = 0; index < keyCount; index++) {
    const key = reader.string();
    const type = reader.uint32();
    if (type === stringType) metadata.set(key, reader.string());
    else if (type === arrayType) {
      const values = readArray(reader, path);
      if (values !== undefined) metadata.set(key, values);
    } else metadata.set(key, readScalar(reader, type, path));
  }
  return metadata;
}

function readScalar(reader: Reader, type: number, path: string): GgufScalar {
  const bytes = reader.bytes(bytesOf(type, path));
  switch (type) {
    case 0:
      return bytes.readUInt8();
    case 1:
      return bytes.readInt8();
    case 2:
      return bytes.readUInt16LE();
    case 3:
      return bytes.readInt16LE();
    case 4:
      return bytes.readUInt32LE();
    case 5:
      return bytes.readInt32LE();
    case 6:
      return bytes.readFloatLE();
    case 7:
      return bytes.readUInt8() !== 0;
    case 10:
      return bytes.readBigUInt64LE();
    case 11:
      return bytes.readBigInt64LE();
    default:
      return bytes.readDoubleLE();
  }
}

/** Enough for one value per layer. */
const keptArrayLength = 1024;

/** The values of a short list of scalars; any other list is skipped. */
function readArray(reader: Reader, path: string): GgufScalar[] | undefined {
  const type = reader.uint32();
  const count = reader.count();
  if (type === arrayType) {
    for (let index = 0; index < count; index++) readArray(reader, path);
  } else if (type === stringType) {
    for (let index = 0; index < count; index++) reader.skip(reader.count());
  } else if (count > keptArrayLength) {
    reader.skip(count * bytesOf(type, path));
  } else {
    return Array.from({ length: count }, () => readScalar(reader, type, path));
  }
  return undefined;
}

function bytesOf(type: number, path: string): number {
  const bytes = scalarBytes[type];
  if (!bytes) throw modelNotGguf({ path, reason: `its metadata has a value of the unknown type ${type}.` });
  return bytes;
}

/** Every tensor must begin inside the file. Whether the last one also ends there is for llama.cpp to check, which knows the sizes of all types. */
function checkTensors(reader: Reader, tensorCount: number, metadata: GgufSummary["metadata"], path: string): void {
  let lastOffset = 0;
  for (let index = 0; index < tensorCount; index++) {
    reader.skip(reader.count()); // name
    reader.skip(reader.uint32() * 8 + 4); // dimensions, type
    lastOffset = Math.max(lastOffset, reader.count());
  }
  const alignment = metadata.get("general.alignment");
  const unit = typeof alignment === "number" && alignment > 0 ? alignment : 32;
  const dataStart = Math.ceil(reader.position() / unit) * unit;
  if (tensorCount > 0 && dataStart + lastOffset >= reader.fileBytes) {
    throw modelTruncated({ path, reason: `it has ${reader.fileBytes} bytes, but its tensors go on after byte ${dataStart + lastOffset}.` });
  }
}

/** A cursor over the file that throws `modelTruncated` at its end. */
interface Reader {
  readonly fileBytes: number;
  position(): number;
  seek(position: number): void;
  skip(bytes: number): void;
  bytes(count: number): Buffer;
  uint32(): number;
  /** A 64-bit count, length or offset, which a sound file keeps under its own size. */
  count(): number;
  string(): string;
}

const windowBytes = 1024 * 1024;

function createReader(file: number, fileBytes: number, path: string): Reader {
  const window = Buffer.allocUnsafe(windowBytes);
  let windowStart = 0;
  let windowLength = 0;
  let cursor = 0;

  const need = (count: number) => {
    if (cursor + count > fileBytes) throw modelTruncated({ path, reason: `it has ${fileBytes} bytes and ends within its own description.` });
  };
  const bytes = (count: number): Buffer => {
    need(count);
    if (count > windowBytes) {
      const large = Buffer.allocUnsafe(count);
      readSync(file, large, 0, count, cursor);
      cursor += count;
      return large;
    }
    if (cursor < windowStart || cursor + count > windowStart + windowLength) {
      windowStart = cursor;
      windowLength = readSync(file, window, 0, windowBytes, cursor);
    }
    const start = cursor - windowStart;
    cursor += count;
    return window.subarray(start, start + count);
  };
  const count = () => Number(bytes(8).readBigUInt64LE());
  return {
    fileBytes,
    position: () => cursor,
    seek: (position) => {
      cursor = position;
    },
    skip: (skipped) => {
      need(skipped);
      cursor += skipped;
    },
    bytes,
    uint32: () => bytes(4).readUInt32LE(),
    count,
    string: () => bytes(count()).toString("utf8"),
  };
}
