/** Reads little-endian values from a file front to back, through one window, never past the file's end. */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { modelFileMissing, truncatedGguf } from "../errors.js";

const windowBytes = 256 * 1024;

export interface ByteCursor {
  readonly path: string;
  readonly fileBytes: number;
  /** Offset of the next byte. */
  position(): number;
  u8(): number;
  i8(): number;
  u16(): number;
  i16(): number;
  u32(): number;
  i32(): number;
  f32(): number;
  f64(): number;
  /** Loses precision over 2^53. */
  u64(): number;
  i64(): number;
  /** The next `length` bytes as UTF-8. */
  text(length: number): string;
  skip(length: number): void;
}

/** Calls `read` with a cursor at the file's first byte and closes the file afterwards. Reading past the end throws `truncated_gguf`. */
export function withByteCursor<Result>(path: string, read: (cursor: ByteCursor) => Result): Result {
  const descriptor = openForReading(path);
  try {
    const status = fstatSync(descriptor);
    if (!status.isFile()) throw modelFileMissing({ path, reason: "it is not a file" });
    return read(createByteCursor(path, descriptor, status.size));
  } finally {
    closeSync(descriptor);
  }
}

/** Opens a model file; throws `model_file_missing` with the reason. */
export function openForReading(path: string): number {
  try {
    return openSync(path, "r");
  } catch (cause) {
    throw modelFileMissing({ path, reason: fileErrorReason(cause) }, { cause });
  }
}

/** The reason of a failed file operation in words. */
export function fileErrorReason(cause: unknown): string {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
  const known: Record<string, string> = { ENOENT: "there is no such file", EACCES: "permission is denied", EISDIR: "it is a folder" };
  return known[code] ?? (cause instanceof Error ? cause.message : String(cause));
}

function createByteCursor(path: string, descriptor: number, fileBytes: number): ByteCursor {
  let window = Buffer.alloc(0);
  let windowStart = 0;
  let position = 0;

  /** Reserves the next bytes: moves on by `length` and returns where in the window they begin. */
  function take(length: number): number {
    ensure(length);
    const at = position - windowStart;
    position += length;
    if (at >= 0 && at + length <= window.length) return at;
    windowStart = position - length;
    window = readAt(descriptor, windowStart, Math.min(Math.max(windowBytes, length), fileBytes - windowStart));
    // The file became shorter while it was read.
    if (window.length < length) throw truncatedGguf({ path, fileBytes: windowStart + window.length, neededBytes: position });
    return 0;
  }

  function read(length: number, value: (bytes: Buffer, at: number) => number): number {
    const at = take(length);
    return value(window, at);
  }

  function ensure(length: number): void {
    if (length > fileBytes - position) throw truncatedGguf({ path, fileBytes, neededBytes: position + length });
  }

  return {
    path,
    fileBytes,
    position: () => position,
    u8: () => read(1, (bytes, at) => bytes.readUInt8(at)),
    i8: () => read(1, (bytes, at) => bytes.readInt8(at)),
    u16: () => read(2, (bytes, at) => bytes.readUInt16LE(at)),
    i16: () => read(2, (bytes, at) => bytes.readInt16LE(at)),
    u32: () => read(4, (bytes, at) => bytes.readUInt32LE(at)),
    i32: () => read(4, (bytes, at) => bytes.readInt32LE(at)),
    f32: () => read(4, (bytes, at) => bytes.readFloatLE(at)),
    f64: () => read(8, (bytes, at) => bytes.readDoubleLE(at)),
    // In halves: a vocabulary has hundreds of thousands of lengths, and BigInt is slow.
    u64: () => read(8, (bytes, at) => bytes.readUInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)),
    i64: () => read(8, (bytes, at) => bytes.readInt32LE(at + 4) * 2 ** 32 + bytes.readUInt32LE(at)),
    text: (length) => {
      const at = take(length);
      return window.toString("utf8", at, at + length);
    },
    skip: (length) => {
      ensure(length);
      position += length;
    },
  };
}

/** Up to `length` bytes from `offset`; fewer only where the file ends. */
export function readAt(descriptor: number, offset: number, length: number): Buffer<ArrayBuffer> {
  const bytes = Buffer.alloc(length);
  let filled = 0;
  while (filled < length) {
    const got = readSync(descriptor, bytes, filled, length - filled, offset + filled);
    if (got === 0) break;
    filled += got;
  }
  return bytes.subarray(0, filled);
}
