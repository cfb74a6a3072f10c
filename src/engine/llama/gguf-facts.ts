/** What planning needs of a model, from its file's head alone. */
import type { EngineSettings } from "../protocol.js";
import type { GgufSummary } from "./gguf.js";
import { kvElementBytes } from "./kv-types.js";

export interface GgufFacts {
  /** 0 when the file does not say. */
  readonly trainedContextTokens: number;
  /** Bytes of keys and values of one token over all layers; 0 for a model without attention. */
  readonly kvBytesPerToken: number;
  /** The file's own size: of a model in several files, the first one's alone. */
  readonly weightBytes: number;
  readonly layers: number;
  /** Whether a cached sequence's tail can be dropped, as far as the head tells; a loaded model knows for certain. */
  readonly canTrim: boolean;
}

export function ggufFacts(summary: GgufSummary, kvType: EngineSettings["kvType"]): GgufFacts {
  const value = (key: string) => summary.metadata.get(`${summary.architecture}.${key}`);
  const number = (key: string): number => {
    const found = value(key);
    return typeof found === "number" || typeof found === "bigint" ? Number(found) : 0;
  };
  const layers = number("block_count");
  const heads = number("attention.head_count");
  const headSize = heads > 0 ? number("embedding_length") / heads : 0;
  const keySize = number("attention.key_length") || headSize;
  const valueSize = number("attention.value_length") || headSize;
  return {
    trainedContextTokens: number("context_length"),
    kvBytesPerToken: Math.ceil(kvHeadsOfAllLayers(value("attention.head_count_kv"), heads, layers) * (keySize + valueSize) * kvElementBytes[kvType]),
    weightBytes: summary.fileBytes,
    layers,
    canTrim: number("attention.sliding_window") === 0 && !isRecurrent(summary),
  };
}

/** One number for all layers, or one for each of them; without it, every head has its own keys. */
function kvHeadsOfAllLayers(kvHeads: unknown, heads: number, layers: number): number {
  if (Array.isArray(kvHeads)) return kvHeads.reduce((sum: number, count: number) => sum + count, 0);
  return layers * (typeof kvHeads === "number" ? kvHeads : heads);
}

/** State-space, RWKV and linear-attention layers, alone or beside attention. */
function isRecurrent({ architecture, metadata }: GgufSummary): boolean {
  return ["ssm.state_size", "ssm.conv_kernel", "wkv.head_size", "shortconv.l_cache", "kda.head_dim"].some((key) => metadata.has(`${architecture}.${key}`));
}
