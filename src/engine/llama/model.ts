/** Loads a GGUF model, cancellable, and says why when it cannot be loaded. */
import { basename } from "node:path";
import koffi from "koffi";
import { engineOutOfMemory, modelLoadCancelled, modelLoadFailed, modelUnsupported, type PagodaError } from "../../errors.js";
import { type GgufModel, readGgufModel } from "../../registry/gguf-model.js";
import { constants } from "./constants.js";
import { callAsync, type ModelPointer, type Native, type VocabularyPointer } from "./functions.js";
import type { Llama } from "./open.js";

export interface LoadOptions {
  readonly path: string;
  /** Layers held on the GPU; `auto` and anything beyond the model's layers means all of them. Ignored on the CPU backend. */
  readonly gpuLayers: number | "auto";
  /** Loads the vocabulary and metadata alone: enough to tokenize, takes a fraction of the time and memory. */
  readonly vocabularyOnly?: boolean;
  /** From 0 to 1. */
  readonly onProgress?: (fraction: number) => void;
  readonly signal?: AbortSignal;
}

export interface LlamaModel {
  readonly llama: Llama;
  readonly pointer: ModelPointer;
  readonly vocabulary: VocabularyPointer;
  readonly path: string;
  /** What the file itself says. */
  readonly file: GgufModel;
  readonly architecture: string;
  readonly vocabularySize: number;
  readonly sizeBytes: number;
  readonly parameterCount: number;
  readonly trainedContextTokens: number;
  readonly embeddingSize: number;
  readonly layers: number;
  readonly gpuLayers: number;
  /** Whether the tail of a cached sequence can be dropped. */
  readonly canTrim: boolean;
  readonly endOfGeneration: ReadonlySet<number>;
  /** Tokens that the model's file says must never be generated. */
  readonly suppressed: readonly number[];
  /** A scalar of the GGUF's metadata, as llama.cpp prints it. */
  metadata(key: string): string | undefined;
  /** Frees the model; its contexts must be closed before. Harmless when repeated. */
  close(): void;
}

/** Loads a model. Throws coded errors: those of `readGgufModel`, and unsupported, out of memory, cancelled, or failed with llama.cpp's own reason. */
export async function loadModel(llama: Llama, options: LoadOptions): Promise<LlamaModel> {
  // What is no sound model must not come before native code, which may abort the process.
  const file = readGgufModel(options.path);
  const pointer = await loadNative(llama, { ...options, path: file.path });
  try {
    refuseUnsupported(llama.native, pointer, options.path);
    return describe(llama, pointer, file, options);
  } catch (error) {
    llama.native.llama_model_free(pointer);
    throw error;
  }
}

/** An empty list, ended by a null pointer: a GPU that the libraries found is not touched when the CPU was asked for. */
const noDevices = koffi.alloc(koffi.pointer(koffi.types.void), 1) as bigint;
new Uint8Array(koffi.view(noDevices, koffi.sizeof(koffi.pointer(koffi.types.void)))).fill(0);

const progressType = koffi.pointer(koffi.proto(koffi.types.bool, [koffi.types.float, koffi.pointer(koffi.types.void)]));

async function loadNative(llama: Llama, options: LoadOptions): Promise<ModelPointer> {
  const { native } = llama;
  const { path, signal, onProgress } = options;
  if (signal?.aborted) throw modelLoadCancelled({ path });
  const report = koffi.register((fraction: number) => {
    onProgress?.(fraction);
    return !(signal?.aborted ?? false);
  }, progressType);
  const endCollecting = llama.log.collect({ expected: true });
  try {
    const params = native.llama_model_default_params();
    if (llama.backend === "cpu") params.devices = noDevices;
    params.n_gpu_layers = llama.backend === "cpu" ? 0 : options.gpuLayers === "auto" ? -1 : options.gpuLayers;
    params.vocab_only = options.vocabularyOnly ?? false;
    params.progress_callback = report;
    const pointer = await callAsync(native.llama_model_load_from_file, path, params);
    if (pointer === null) throw loadFailure(path, endCollecting(), signal);
    if (signal?.aborted) {
      native.llama_model_free(pointer);
      throw modelLoadCancelled({ path });
    }
    return pointer;
  } finally {
    endCollecting();
    koffi.unregister(report);
  }
}

/** Turns the lines that llama.cpp logged into an error: it returns no codes, only a null pointer. */
function loadFailure(path: string, lines: readonly string[], signal: AbortSignal | undefined): PagodaError {
  if (signal?.aborted) return modelLoadCancelled({ path });
  // Of a file that it does not take apart it only repeats the path here; then what was wrong is in the first line.
  const explained = lines.map((line) => /error loading model: (?!.*failed to load model from)(.*)$/.exec(line)?.[1]).find((reason) => reason !== undefined);
  // Names from the file may hold anything.
  const reason = (explained ?? lines[0] ?? "llama.cpp gave no reason.").replace(/\p{Cc}/gu, "?");
  const all = lines.join("\n");
  if (/unknown model architecture/.test(all)) return modelUnsupported({ path, reason });
  if (outOfMemoryPattern.test(all)) return engineOutOfMemory({ what: `the model '${path}'`, reason });
  if (/unknown (pre-)?tokenizer|tensor '.*' not found|missing tensor|key not found|unsupported/i.test(all)) return modelUnsupported({ path, reason });
  return modelLoadFailed({ path, reason });
}

/** What llama.cpp and its backends print when memory runs out. */
export const outOfMemoryPattern =
  /unable to allocate|failed to allocate|out of memory|cudaMalloc failed|std::bad_alloc|ErrorOutOfDeviceMemory|ErrorOutOfHostMemory/i;

/** Some models load well and then abort the process when they are asked to generate, so they are refused here. */
function refuseUnsupported(native: Native, pointer: ModelPointer, path: string): void {
  const refuse = (reason: string): never => {
    throw modelUnsupported({ path, reason });
  };
  const type = native.llama_vocab_type(native.llama_model_get_vocab(pointer));
  if (type === constants.LLAMA_VOCAB_TYPE_NONE) refuse("it has no vocabulary.");
  if (native.llama_model_has_encoder(pointer) || !native.llama_model_has_decoder(pointer)) refuse("only decoder models that generate text can be served.");
  if (type === constants.LLAMA_VOCAB_TYPE_WPM) refuse("its vocabulary (WordPiece) is that of an embedding model.");
  if (native.llama_model_is_diffusion(pointer)) refuse("diffusion models do not generate token by token.");
  const missing = type === constants.LLAMA_VOCAB_TYPE_SPM ? missingBytes(native, pointer) : 0;
  // Tokenizing a character that is not in the vocabulary would look the byte up, throw in C++ and end the process.
  if (missing > 0) refuse(`its SentencePiece vocabulary lacks ${missing} of the 256 byte tokens.`);
}

function missingBytes(native: Native, pointer: ModelPointer): number {
  const vocabulary = native.llama_model_get_vocab(pointer);
  const wanted = new Set<string>();
  for (let byte = 0; byte < 256; byte++) wanted.add(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
  const size = native.llama_vocab_n_tokens(vocabulary);
  for (let token = 0; token < size && wanted.size > 0; token++) wanted.delete(native.llama_vocab_get_text(vocabulary, token));
  return wanted.size;
}

function describe(llama: Llama, pointer: ModelPointer, file: GgufModel, options: LoadOptions): LlamaModel {
  const { native } = llama;
  const vocabulary = native.llama_model_get_vocab(pointer);
  const vocabularySize = native.llama_vocab_n_tokens(vocabulary);
  const layers = native.llama_model_n_layer(pointer);
  const endOfGeneration = new Set<number>();
  for (let token = 0; token < vocabularySize; token++) if (native.llama_vocab_is_eog(vocabulary, token)) endOfGeneration.add(token);
  let isOpen = true;
  return {
    llama,
    pointer,
    vocabulary,
    path: options.path,
    file,
    architecture: readMetadataValue(native, pointer, "general.architecture") ?? "unknown",
    vocabularySize,
    sizeBytes: Number(native.llama_model_size(pointer)),
    parameterCount: Number(native.llama_model_n_params(pointer)),
    trainedContextTokens: native.llama_model_n_ctx_train(pointer),
    embeddingSize: native.llama_model_n_embd(pointer),
    layers,
    // The output layer counts as one more, as llama.cpp counts.
    gpuLayers: llama.backend === "cpu" ? 0 : options.gpuLayers === "auto" ? layers + 1 : Math.min(options.gpuLayers, layers + 1),
    canTrim: !native.llama_model_is_recurrent(pointer) && !native.llama_model_is_hybrid(pointer) && native.llama_model_n_swa(pointer) === 0,
    endOfGeneration,
    suppressed: suppressedTokens(native, vocabulary),
    metadata: (key) => readMetadataValue(native, pointer, key),
    close() {
      if (isOpen) native.llama_model_free(pointer);
      isOpen = false;
    },
  };
}

function suppressedTokens(native: Native, vocabulary: VocabularyPointer): number[] {
  const count: [number] = [0];
  const tokens = native.llama_vocab_get_suppress_tokens(vocabulary, count);
  return tokens === null || count[0] <= 0 ? [] : [...new Int32Array(koffi.view(tokens, count[0] * Int32Array.BYTES_PER_ELEMENT))];
}

function readMetadataValue(native: Native, pointer: ModelPointer, key: string): string | undefined {
  const length = native.llama_model_meta_val_str(pointer, key, new Uint8Array(1), 1);
  if (length < 0) return undefined;
  const buffer = Buffer.alloc(length + 1);
  native.llama_model_meta_val_str(pointer, key, buffer, buffer.length);
  return buffer.toString("utf8", 0, length);
}

/** A short name for a model that was given none: the file's, without its ending. */
export function modelNameOf(path: string): string {
  return basename(path).replace(/\.gguf$/i, "");
}
