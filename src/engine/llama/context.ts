/** A context: the KV cache of a model, and what computes with it. One computation at a time. */
import koffi from "koffi";
import { contextFailed, engineOutOfMemory } from "../../errors.js";
import { kvBytesPerToken } from "../../registry/gguf-header.js";
import type { EngineSettings } from "../protocol.js";
import { type BatchBuffer, createBatch } from "./batch.js";
import { constants } from "./constants.js";
import { type ContextPointer, callAsync, type MemoryPointer } from "./functions.js";
import { kvElementBytes } from "./kv-types.js";
import { type LlamaModel, outOfMemoryPattern } from "./model.js";
import type { ContextParams } from "./structs.js";
import { attachThreadpool } from "./threadpool.js";

export interface ContextOptions {
  readonly layout: "streams" | "unified";
  /** Tokens of the whole cache. llama.cpp rounds up to multiples of 256, in the streams layout for each sequence. */
  readonly kvTokens: number;
  /** Sequence ids (slots), 256 at most: running sequences and those that stay cached beside them. */
  readonly maxSequences: number;
  /** Tokens of one llama_decode call at most. */
  readonly batchTokens: number;
  readonly kvType: EngineSettings["kvType"];
  readonly threads: number;
  readonly flashAttention: boolean | "auto";
}

export interface LlamaContext {
  readonly model: LlamaModel;
  readonly pointer: ContextPointer;
  readonly memory: MemoryPointer;
  readonly layout: "streams" | "unified";
  /** Tokens of the whole cache, as made. */
  readonly kvTokens: number;
  /** Tokens that one sequence can have: one stream, or the whole pool. */
  readonly sequenceTokens: number;
  readonly maxSequences: number;
  readonly batchTokens: number;
  /** An estimate from the model's dimensions. */
  readonly kvBytes: number;
  readonly batch: BatchBuffer;
  /** Computes the batch on another thread. Resolves with llama_decode's status when the logits are there to read. */
  decode(): Promise<number>;
  /** One row of the last computation's logits, in the order of the batch: a view that the next computation overwrites. */
  logits(output: number): Float32Array;
  /** Waits for a running computation, then frees. Harmless when repeated. */
  close(): Promise<void>;
}

/** Makes a context. Throws coded errors: out of memory, or failed with llama.cpp's own reason. */
export async function createContext(model: LlamaModel, options: ContextOptions): Promise<LlamaContext> {
  const { native, log } = model.llama;
  const endCollecting = log.collect({ expected: true });
  const pointer = await callAsync(native.llama_init_from_model, model.pointer, contextParams(model, options));
  const lines = endCollecting();
  if (pointer === null) throw contextFailure(lines);
  const memory = native.llama_get_memory(pointer);
  if (memory === null) {
    native.llama_free(pointer);
    throw contextFailed({ reason: "the model has no KV cache." });
  }
  return createHandle(model, options, pointer, memory);
}

const kvTypes = { f16: constants.GGML_TYPE_F16, q8_0: constants.GGML_TYPE_Q8_0, q4_0: constants.GGML_TYPE_Q4_0 } as const;

/** Tokens that llama.cpp computes in one pass; a larger batch is cut into these. */
const passTokens = 512;

function contextParams(model: LlamaModel, options: ContextOptions): ContextParams {
  const params = model.llama.native.llama_context_default_params();
  const usesGpu = model.llama.backend !== "cpu";
  const { flashAttention } = options;
  return Object.assign(params, {
    n_ctx: options.kvTokens,
    n_batch: options.batchTokens,
    n_ubatch: Math.min(options.batchTokens, passTokens),
    n_seq_max: options.maxSequences,
    // Below the number of sequences an assertion would end the process.
    n_outputs_max: Math.max(options.maxSequences, 1),
    n_outputs_max_per_seq: 1,
    n_threads: options.threads,
    n_threads_batch: options.threads,
    flash_attn_type:
      flashAttention === "auto"
        ? constants.LLAMA_FLASH_ATTN_TYPE_AUTO
        : flashAttention
          ? constants.LLAMA_FLASH_ATTN_TYPE_ENABLED
          : constants.LLAMA_FLASH_ATTN_TYPE_DISABLED,
    type_k: kvTypes[options.kvType],
    type_v: kvTypes[options.kvType],
    offload_kqv: usesGpu,
    op_offload: usesGpu,
    no_perf: true,
    // A sliding-window model keeps its window only: its sequences are continued at their end and never trimmed.
    swa_full: false,
    kv_unified: options.layout === "unified",
  } satisfies ContextParams);
}

function contextFailure(lines: readonly string[]) {
  const explained = lines.map((line) => /failed to initialize the context: (.*)$/.exec(line)?.[1]).find((reason) => reason !== undefined);
  const reason = explained ?? lines[0] ?? "llama.cpp gave no reason.";
  return outOfMemoryPattern.test(lines.join("\n")) ? engineOutOfMemory({ what: "the KV cache and compute buffers", reason }) : contextFailed({ reason });
}

function createHandle(model: LlamaModel, options: ContextOptions, pointer: ContextPointer, memory: MemoryPointer): LlamaContext {
  const { native, backend } = model.llama;
  const { vocabularySize } = model;
  const batchTokens = native.llama_n_batch(pointer);
  const maxSequences = native.llama_n_seq_max(pointer);
  const kvTokens = native.llama_n_ctx(pointer);
  const batch = createBatch(batchTokens);
  const freeThreads = attachThreadpool(native, pointer, options.threads);

  // The library keeps its logits in one buffer, of at least this many rows; the view is made anew only when the buffer moved.
  const bufferRows = maxSequences;
  let buffer: Float32Array = new Float32Array(0);
  let bufferAddress: bigint | null = null;
  let running: Promise<unknown> = Promise.resolve();
  let isOpen = true;

  const compute = async (): Promise<number> => {
    const status = await callAsync(native.llama_decode, pointer, batch.native);
    // A GPU computes on after the call has returned, and reading the logits would wait for it on the event loop.
    if (backend !== "cpu") await callAsync(native.llama_synchronize, pointer);
    if (status !== 0 || batch.outputs === 0) return status;
    const address = native.llama_get_logits(pointer);
    if (address !== null && address !== bufferAddress) {
      buffer = new Float32Array(koffi.view(address, bufferRows * vocabularySize * Float32Array.BYTES_PER_ELEMENT));
      bufferAddress = address;
    }
    return status;
  };
  return {
    model,
    pointer,
    memory,
    layout: options.layout,
    kvTokens,
    sequenceTokens: native.llama_n_ctx_seq(pointer),
    maxSequences,
    batchTokens,
    kvBytes: kvTokens * kvBytesPerToken(model.file, kvElementBytes[options.kvType]),
    batch,
    decode() {
      const result = compute();
      running = result.catch(() => undefined); // whoever called decode gets the failure
      return result;
    },
    logits: (output) => buffer.subarray(output * vocabularySize, (output + 1) * vocabularySize),
    async close() {
      if (!isOpen) return;
      isOpen = false;
      await running;
      native.llama_free(pointer);
      freeThreads?.();
      batch.free();
    },
  };
}
