/** The vocabularies that can be put into a random model: those of llama.cpp's own tree. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ensureLlamaSource } from "../llama-source.js";
import type { GgufEntry } from "./gguf-format.js";
import { type GgufHeader, readArrayLength, readGgufHeader, readString } from "./gguf-reader.js";

export interface Vocabulary {
  readonly name: string;
  /** All of `tokenizer.*`, as the source file has it: tokens, merges, scores, special tokens, chat template. */
  readonly entries: readonly GgufEntry[];
  readonly tokens: number;
  /** llama.cpp's names of the algorithm and of the splitting rule before it, such as `gpt2/qwen2`. */
  readonly kind: string;
}

const fileName = /^ggml-vocab-(.+)\.gguf$/;

/** Names of all vocabularies, sorted. Clones llama.cpp's tree at first use. */
export function vocabularyNames(): string[] {
  const names = readdirSync(modelsDirectory()).map((file) => fileName.exec(file)?.[1]);
  return names.filter((name) => name !== undefined).sort();
}

/** Reads one vocabulary. Throws when there is none of this name. */
export function readVocabulary(name: string): Vocabulary {
  const names = vocabularyNames();
  if (!names.includes(name)) throw new Error(`unknown vocabulary '${name}'; known are ${names.join(", ")}.`);
  return vocabularyOf(name, readGgufHeader(readFileSync(join(modelsDirectory(), `ggml-vocab-${name}.gguf`))));
}

function vocabularyOf(name: string, header: GgufHeader): Vocabulary {
  const tokens = readArrayLength(header, "tokenizer.ggml.tokens");
  if (tokens === undefined) throw new Error(`The vocabulary '${name}' has no tokens.`);
  const entries = [...header.entries.values()].filter((entry) => entry.key.startsWith("tokenizer."));
  const kind = `${readString(header, "tokenizer.ggml.model") ?? "?"}/${readString(header, "tokenizer.ggml.pre") ?? "default"}`;
  return { name, entries, tokens, kind };
}

function modelsDirectory(): string {
  return join(ensureLlamaSource().directory, "models");
}
