/** Checks that a tokenizer.json beside a GGUF file has the same tokens as the file itself. */
import { readFileSync } from "node:fs";
import { tokenizerFileInvalid } from "../errors.js";
import { byteLevelBytes } from "./byte-alphabet.js";
import type { Vocabulary } from "./vocabulary.js";

export interface AlignmentReport {
  /** Tokens that were compared. */
  readonly compared: number;
  /** Tokens that are not the same. */
  readonly differing: number;
  /** The first of them. `undefined` bytes: the model has no such token. */
  readonly differences: readonly TokenDifference[];
}

export interface TokenDifference {
  readonly id: number;
  readonly inFile: string;
  readonly inModel: string | undefined;
}

/** The members of tokenizer.json that matter here. */
interface TokenizerFile {
  readonly model?: { readonly type?: string; readonly vocab?: unknown };
  readonly added_tokens?: readonly { readonly id: number; readonly content: string }[];
  readonly pre_tokenizer?: unknown;
  readonly decoder?: unknown;
}

const reported = 10;

/**
 * Compares every token of a tokenizer.json with the model's by its bytes: byte-level, SentencePiece and Unigram vocabularies.
 * Tokens that only the model has (padding) are no difference. Throws `tokenizer_file_invalid`.
 */
export function compareTokenizerFile(path: string, vocabulary: Vocabulary): AlignmentReport {
  const file = readTokenizerFile(path);
  const toBytes = spellingDecoder(file);
  const added = new Map((file.added_tokens ?? []).map(({ id, content }) => [id, content]));
  const specialText = new Map(vocabulary.special.map(({ id, text }) => [id, text]));
  const entries = [...vocabularyEntries(file, path).filter(([id]) => !added.has(id)), ...added];

  const differences = entries.flatMap(([id, spelling]): TokenDifference[] => {
    const own = specialText.has(id) ? Buffer.from(specialText.get(id) ?? "") : vocabulary.piece(id);
    const expected = added.has(id) ? Buffer.from(spelling) : toBytes(spelling);
    if (id < vocabulary.size && Buffer.compare(own, expected) === 0) return [];
    return [{ id, inFile: spelling, inModel: id < vocabulary.size ? Buffer.from(own).toString() : undefined }];
  });
  return { compared: entries.length, differing: differences.length, differences: differences.slice(0, reported) };
}

function readTokenizerFile(path: string): TokenizerFile {
  try {
    const file: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof file === "object" && file !== null) return file;
  } catch (cause) {
    throw tokenizerFileInvalid({ path, reason: cause instanceof Error ? cause.message : String(cause) }, { cause });
  }
  throw tokenizerFileInvalid({ path, reason: "it holds no object" });
}

/** [id, spelling] of the file's vocabulary: an object from spelling to id, or a list of [spelling, score] in the order of ids. */
function vocabularyEntries({ model }: TokenizerFile, path: string): [number, string][] {
  const vocab = model?.vocab;
  if (Array.isArray(vocab)) return vocab.map((entry: unknown, id) => [id, String(Array.isArray(entry) ? entry[0] : entry)]);
  if (typeof vocab === "object" && vocab !== null) return Object.entries(vocab).map(([spelling, id]) => [Number(id), spelling]);
  throw tokenizerFileInvalid({ path, reason: "it has no vocabulary (model.vocab)" });
}

/** How spellings stand for bytes: GPT-2's byte alphabet, or SentencePiece's ▁ for a space and <0xNN> for a byte. */
function spellingDecoder({ pre_tokenizer, decoder }: TokenizerFile): (spelling: string) => Uint8Array {
  const isByteLevel = JSON.stringify([pre_tokenizer, decoder]).includes('"ByteLevel"');
  return isByteLevel ? (spelling) => byteLevelBytes(spelling) ?? Buffer.from(spelling) : sentencePieceBytes;
}

function sentencePieceBytes(spelling: string): Uint8Array {
  const byte = /^<0x([0-9A-F]{2})>$/.exec(spelling)?.[1];
  return byte === undefined ? Buffer.from(spelling.replaceAll("▁", " ")) : Uint8Array.of(Number.parseInt(byte, 16));
}
