/** Metadata that tests write by hand: arrays, and a small vocabulary that llama.cpp accepts. */
import { encodeString, type GgufEntry, stringEntry, uint32, uint32Entry, uint64, valueType } from "./gguf-format.js";
import type { Vocabulary } from "./vocabularies.js";

type ArrayElements = { readonly string: readonly string[]; readonly int32: readonly number[]; readonly float32: readonly number[] };

export function arrayEntry<Kind extends keyof ArrayElements>(key: string, kind: Kind, values: ArrayElements[Kind]): GgufEntry {
  const elements = values.map((value) => (typeof value === "string" ? encodeString(value) : encodeNumber(kind, value)));
  return { key, encoded: Buffer.concat([uint32(valueType.array), uint32(valueType[kind]), uint64(values.length), ...elements]) };
}

function encodeNumber(kind: keyof ArrayElements, value: number): Buffer {
  const bytes = Buffer.alloc(4);
  if (kind === "float32") bytes.writeFloatLE(value);
  else bytes.writeInt32LE(value);
  return bytes;
}

const tokenTypes = { normal: 1, unknown: 2, control: 3, byte: 6 } as const;

/** A SentencePiece vocabulary: three control tokens, all bytes, and the letters from a to z. */
export function byteVocabulary(): Vocabulary {
  const controls = ["<unk>", "<s>", "</s>"];
  const bytes = Array.from({ length: 256 }, (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  const letters = Array.from({ length: 26 }, (_, i) => String.fromCharCode("a".charCodeAt(0) + i));
  const tokens = [...controls, ...bytes, ...letters];
  const types = [tokenTypes.unknown, tokenTypes.control, tokenTypes.control, ...bytes.map(() => tokenTypes.byte), ...letters.map(() => tokenTypes.normal)];
  const entries = [
    stringEntry("tokenizer.ggml.model", "llama"),
    arrayEntry("tokenizer.ggml.tokens", "string", tokens),
    arrayEntry(
      "tokenizer.ggml.scores",
      "float32",
      tokens.map((_, id) => -id),
    ),
    arrayEntry("tokenizer.ggml.token_type", "int32", types),
    uint32Entry("tokenizer.ggml.unknown_token_id", 0),
    uint32Entry("tokenizer.ggml.bos_token_id", 1),
    uint32Entry("tokenizer.ggml.eos_token_id", 2),
  ];
  return { name: "bytes", entries, tokens: tokens.length, kind: "llama/default" };
}
