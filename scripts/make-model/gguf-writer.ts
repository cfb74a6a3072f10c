/** Writes GGUF files tensor by tensor, so that a file of any size needs memory for one chunk only. */
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import { encodeString, type GgufEntry, type GgufTensor, ggufMagic, ggufVersion, paddedBytes, tensorBytes, tensorTypes, uint32, uint64 } from "./gguf-format.js";

/**
 * Writes a whole file and returns its size in bytes. `dataOf` gives a tensor's bytes in chunks of any size; a chunk is written before the next is asked for, so it may be reused.
 * The file appears under its name only when it is complete. Throws when a tensor's chunks do not add up to its size, or when the disk does.
 */
export function writeGguf(
  path: string,
  entries: readonly GgufEntry[],
  tensors: readonly GgufTensor[],
  dataOf: (tensor: GgufTensor) => Iterable<Uint8Array>,
): number {
  const unfinished = `${path}.partial`;
  const file = openSync(unfinished, "w");
  let bytes = 0;
  try {
    bytes += writeFully(file, encodeHeader(entries, tensors));
    for (const tensor of tensors) bytes += writeTensor(file, tensor, dataOf(tensor));
  } catch (error) {
    closeSync(file);
    rmSync(unfinished, { force: true });
    throw error;
  }
  closeSync(file);
  renameSync(unfinished, path);
  return bytes;
}

/** Everything before the tensors' data: metadata, then each tensor's name, shape, type and place, then padding. */
export function encodeHeader(entries: readonly GgufEntry[], tensors: readonly GgufTensor[]): Buffer {
  const parts: Uint8Array[] = [uint32(ggufMagic), uint32(ggufVersion), uint64(tensors.length), uint64(entries.length)];
  for (const entry of entries) parts.push(encodeString(entry.key), entry.encoded);
  let offset = 0;
  for (const tensor of tensors) {
    parts.push(
      encodeString(tensor.name),
      uint32(tensor.dimensions.length),
      ...tensor.dimensions.map(uint64),
      uint32(tensorTypes[tensor.type].tag),
      uint64(offset),
    );
    offset += paddedBytes(tensorBytes(tensor));
  }
  const header = Buffer.concat(parts);
  return Buffer.concat([header], paddedBytes(header.length));
}

function writeTensor(file: number, tensor: GgufTensor, chunks: Iterable<Uint8Array>): number {
  const expected = tensorBytes(tensor);
  let written = 0;
  for (const chunk of chunks) written += writeFully(file, chunk);
  if (written !== expected) throw new Error(`${tensor.name} takes ${expected} bytes, but was given ${written}.`);
  return written + writeFully(file, new Uint8Array(paddedBytes(expected) - expected));
}

/** `writeSync` may write less than asked for. */
function writeFully(file: number, bytes: Uint8Array): number {
  let done = 0;
  while (done < bytes.length) done += writeSync(file, bytes, done);
  return done;
}
