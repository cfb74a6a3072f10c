/** Names exactly what answers: the model file, its tokenizer, its chat template and the engine release. */
import { createHash, type Hash } from "node:crypto";
import { closeSync } from "node:fs";
import { openForReading, readAt } from "./byte-cursor.js";
import { readGgufStructure } from "./gguf-reader.js";

const edgeBytes = 1024 * 1024;

export interface VersionParts {
  /** `modelHash` of the model's files. */
  readonly model: string;
  /** `textHash` of tokenizer.json, or of whatever else defines the tokenizer. */
  readonly tokenizer: string;
  /** `textHash` of the chat template in use. */
  readonly template: string;
  /** Release of the engine, such as `v0.4.0`. */
  readonly engine: string;
}

export interface VersionFingerprint extends VersionParts {
  /** Short form for `system_fingerprint`: `b`, then six hex digits for each of the four parts, so that a difference shows which part moved. */
  readonly short: string;
}

/** Joins the parts to a record with a short form; equal parts always give an equal record. */
export function versionFingerprint(parts: VersionParts): VersionFingerprint {
  const { model, tokenizer, template, engine } = parts;
  const digits = [model, tokenizer, template, engine].map((part) => textHash(part).slice(0, 6));
  return { model, tokenizer, template, engine, short: `b${digits.join("-")}` };
}

/** SHA-256 of a text, in hex. */
export function textHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/**
 * SHA-256, in hex, over each file's size, its whole header (metadata, vocabulary, tensor table) and the first and the last MiB of its tensor data.
 * Two quantisations or fine-tunes differ in it. It does not read the middle of a large file, so it names a version and is no proof that the file is intact.
 */
export function modelHash(parts: readonly string[]): string {
  const hash = createHash("sha256");
  for (const path of parts) addFile(hash, path);
  return hash.digest("hex");
}

function addFile(hash: Hash, path: string): void {
  const { fileBytes, headerBytes } = readGgufStructure(path);
  const descriptor = openForReading(path);
  try {
    hash.update(`${fileBytes}\n`);
    const headEnd = Math.min(headerBytes + edgeBytes, fileBytes);
    for (let at = 0; at < headEnd; at += edgeBytes) hash.update(readAt(descriptor, at, Math.min(edgeBytes, headEnd - at)));
    const tailStart = Math.max(headEnd, fileBytes - edgeBytes);
    hash.update(readAt(descriptor, tailStart, fileBytes - tailStart));
  } finally {
    closeSync(descriptor);
  }
}
