/** What a GGUF file says about its model before it is loaded: the figures that planning needs, named. */
import { invalidGguf } from "../errors.js";
import { type GgufStructure, type GgufValue, readGgufStructure } from "./gguf-reader.js";
import { fileTypeName, type MemoryKind, memoryKind } from "./gguf-types.js";

export type { GgufValue, SkippedList } from "./gguf-reader.js";
export type { MemoryKind } from "./gguf-types.js";

/** Numbers are 0 where the file does not state them. Of a split model, sizes cover the one file that was read: see `gguf-model.ts`. */
export interface GgufHeader extends GgufStructure {
  /** `model`, or what else the file holds: `adapter`, `mmproj`, `imatrix`. */
  readonly kind: string;
  readonly architecture: string;
  readonly name: string | undefined;
  /** Quantisation by its usual name, such as `Q4_K_M`; by its largest tensor type where the file names none. */
  readonly fileType: string;
  readonly chatTemplate: string | undefined;
  readonly blockCount: number;
  readonly trainedContextTokens: number;
  readonly embeddingLength: number;
  readonly feedForwardLength: number;
  /** Attention heads of each block. */
  readonly headCounts: readonly number[];
  /** Key and value heads of each block; 0 for a block without attention. */
  readonly kvHeadCounts: readonly number[];
  /** Elements of one key and of one value of one head. */
  readonly keyLength: number;
  readonly valueLength: number;
  readonly vocabularySize: number;
  /** `gpt2`, `llama`, `bert` and so on: the family of the tokenizer. */
  readonly tokenizerModel: string | undefined;
  /** Positions that a sliding-window block looks back; 0 without such blocks. A loaded model knows better whether it is used. */
  readonly slidingWindowTokens: number;
  readonly memory: MemoryKind;
  /** This file's place in a split model, from 0. */
  readonly split: { readonly index: number; readonly count: number } | undefined;
}

/**
 * Reads a GGUF file's header; the tensor data is not touched and long lists are skipped.
 * Throws `model_file_missing`, `not_gguf`, `truncated_gguf` (also when tensors reach past the end) or `invalid_gguf`.
 */
export function readGgufHeader(path: string): GgufHeader {
  const structure = readGgufStructure(path);
  const architecture = text(structure, "general.architecture");
  if (architecture === undefined) throw invalidGguf({ path, reason: "it names no architecture ('general.architecture')" });
  if (!architecturePattern.test(architecture)) throw invalidGguf({ path, reason: "the name of its architecture ('general.architecture') is not a name" });
  const own = (key: string) => `${architecture}.${key}`;
  const blockCount = number(structure, own("block_count"));
  const embeddingLength = number(structure, own("embedding_length"));
  const headCounts = perBlock(structure, own("attention.head_count"), blockCount);
  const kvHeadCounts = structure.metadata.has(own("attention.head_count_kv")) ? perBlock(structure, own("attention.head_count_kv"), blockCount) : headCounts;
  const headLength = Math.floor(embeddingLength / Math.max(1, ...headCounts));
  return {
    ...structure,
    kind: text(structure, "general.type") ?? "model",
    architecture,
    name: text(structure, "general.name"),
    fileType: fileType(structure),
    chatTemplate: text(structure, "tokenizer.chat_template"),
    blockCount,
    trainedContextTokens: number(structure, own("context_length")),
    embeddingLength,
    feedForwardLength: Math.max(0, ...perBlock(structure, own("feed_forward_length"), blockCount)),
    headCounts,
    kvHeadCounts,
    keyLength: number(structure, own("attention.key_length")) || headLength,
    valueLength: number(structure, own("attention.value_length")) || headLength,
    vocabularySize: number(structure, own("vocab_size")) || listLength(structure, "tokenizer.ggml.tokens"),
    tokenizerModel: text(structure, "tokenizer.ggml.model"),
    slidingWindowTokens: number(structure, own("attention.sliding_window")),
    memory: memory(structure, architecture, kvHeadCounts),
    split: split(structure),
  };
}

const architecturePattern = /^[a-z0-9._-]{1,64}$/i;

/** Bytes of keys and values that one token takes in every block together, at `bytesPerElement`; an estimate from above for models with windows. */
export function kvBytesPerToken(header: GgufHeader, bytesPerElement: number): number {
  const heads = header.kvHeadCounts.reduce((sum, count) => sum + count, 0);
  return Math.ceil(heads * (header.keyLength + header.valueLength) * bytesPerElement);
}

function text({ metadata }: GgufStructure, key: string): string | undefined {
  const value = metadata.get(key);
  return typeof value === "string" ? value : undefined;
}

function number({ metadata }: GgufStructure, key: string): number {
  const value = metadata.get(key);
  return typeof value === "number" ? value : 0;
}

/** A value that is one number for all blocks or a list with one for each. */
function perBlock({ metadata }: GgufStructure, key: string, blockCount: number): number[] {
  const value = metadata.get(key);
  if (typeof value === "number") return Array.from({ length: clampBlocks(blockCount) }, () => value);
  return isList(value) ? value.filter((item) => typeof item === "number") : [];
}

// A damaged count must not become a huge allocation; no model has anywhere near as many blocks.
function clampBlocks(blockCount: number): number {
  return Math.min(Math.max(0, Math.floor(blockCount)), 4096);
}

function isList(value: GgufValue | undefined): value is readonly (number | boolean | string)[] {
  return Array.isArray(value);
}

function listLength({ metadata }: GgufStructure, key: string): number {
  const value = metadata.get(key);
  if (isList(value)) return value.length;
  return typeof value === "object" && "skippedItems" in value ? value.skippedItems : 0;
}

/** What state-space, RWKV, short-convolution and linear-attention blocks are described by. */
const stateKeys = ["ssm.state_size", "ssm.conv_kernel", "wkv.head_size", "shortconv.l_cache", "kda.head_dim"];

/** By the architecture's name, or, where that tells nothing, by what the file says of its blocks. */
function memory({ metadata }: GgufStructure, architecture: string, kvHeadCounts: readonly number[]): MemoryKind {
  const known = memoryKind(architecture);
  if (known !== "attention" || !stateKeys.some((key) => metadata.has(`${architecture}.${key}`))) return known;
  return kvHeadCounts.some((count) => count > 0) ? "hybrid" : "recurrent";
}

function fileType(structure: GgufStructure): string {
  const stated = structure.metadata.get("general.file_type");
  const name = typeof stated === "number" ? fileTypeName(stated) : undefined;
  if (name !== undefined) return name;
  const largest = [...structure.tensorBytesByType].sort((a, b) => b[1] - a[1])[0];
  return largest?.[0] ?? "unknown";
}

function split(structure: GgufStructure): { index: number; count: number } | undefined {
  const count = number(structure, "split.count");
  return count > 1 ? { index: number(structure, "split.no"), count } : undefined;
}
