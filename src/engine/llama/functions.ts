/** The C functions that Pagoda calls, with their native and their TypeScript signatures side by side. */
import koffi, { type KoffiFunc, type LibraryHandle, type TypeObject } from "koffi";
import { type Batch, batch, type ContextParams, contextParams, type ModelParams, modelParams, type Pointer, samplerChainParams } from "./structs.js";

export type ModelPointer = Pointer<"llama_model">;
export type ContextPointer = Pointer<"llama_context">;
export type VocabularyPointer = Pointer<"llama_vocab">;
export type MemoryPointer = Pointer<"llama_memory">;
export type SamplerPointer = Pointer<"llama_sampler">;
export type DevicePointer = Pointer<"ggml_backend_device">;
export type BackendPointer = Pointer<"ggml_backend_reg">;
export type ThreadpoolPointer = Pointer<"ggml_threadpool">;

const { void: nothing, bool, int32_t: int32, uint32_t: uint32, uint64_t: uint64, size_t: size, float, string } = koffi.types;
const address = koffi.pointer(nothing);
const sizeOut = koffi.out(koffi.pointer(size)) as unknown as TypeObject;

export type Signature = readonly [result: TypeObject, parameters: readonly TypeObject[]];

// One row per function. What throws across the boundary or aborts on bad arguments is guarded by the callers, see each.
const llamaSignatures = {
  llama_version: [string, []],
  llama_backend_init: [nothing, []],
  llama_log_set: [nothing, [address, address]],
  llama_model_default_params: [modelParams.type, []],
  llama_context_default_params: [contextParams.type, []],
  llama_model_load_from_file: [address, [string, modelParams.type]],
  llama_model_free: [nothing, [address]],
  llama_init_from_model: [address, [address, contextParams.type]],
  llama_free: [nothing, [address]],
  llama_attach_threadpool: [nothing, [address, address, address]],
  llama_n_ctx: [uint32, [address]],
  llama_n_ctx_seq: [uint32, [address]],
  llama_n_batch: [uint32, [address]],
  llama_n_seq_max: [uint32, [address]],
  llama_get_memory: [address, [address]],
  llama_model_get_vocab: [address, [address]],
  llama_model_n_ctx_train: [int32, [address]],
  llama_model_n_embd: [int32, [address]],
  llama_model_n_layer: [int32, [address]],
  llama_model_n_head: [int32, [address]],
  llama_model_n_head_kv: [int32, [address]],
  llama_model_n_swa: [int32, [address]],
  llama_model_meta_val_str: [int32, [address, string, address, size]],
  llama_model_desc: [int32, [address, address, size]],
  llama_model_ftype: [int32, [address]],
  llama_ftype_name: [string, [int32]],
  llama_model_size: [uint64, [address]],
  llama_model_n_params: [uint64, [address]],
  llama_model_chat_template: [string, [address, string]],
  llama_model_has_encoder: [bool, [address]],
  llama_model_has_decoder: [bool, [address]],
  llama_model_is_recurrent: [bool, [address]],
  llama_model_is_hybrid: [bool, [address]],
  llama_model_is_diffusion: [bool, [address]],
  llama_vocab_type: [int32, [address]],
  llama_vocab_n_tokens: [int32, [address]],
  llama_vocab_get_text: [string, [address, int32]],
  llama_vocab_get_attr: [int32, [address, int32]],
  llama_vocab_is_eog: [bool, [address, int32]],
  llama_vocab_bos: [int32, [address]],
  llama_vocab_eos: [int32, [address]],
  llama_vocab_get_add_bos: [bool, [address]],
  llama_vocab_get_add_eos: [bool, [address]],
  llama_vocab_get_suppress_tokens: [address, [address, koffi.out(koffi.pointer(int32)) as unknown as TypeObject]],
  llama_tokenize: [int32, [address, address, int32, address, int32, bool, bool]],
  llama_token_to_piece: [int32, [address, int32, address, int32, int32, bool]],
  llama_memory_seq_rm: [bool, [address, int32, int32, int32]],
  llama_memory_seq_cp: [nothing, [address, int32, int32, int32, int32]],
  llama_memory_seq_pos_max: [int32, [address, int32]],
  llama_state_seq_get_size: [size, [address, int32]],
  llama_state_seq_get_data: [size, [address, address, size, int32]],
  llama_state_seq_set_data: [size, [address, address, size, int32]],
  llama_decode: [int32, [address, batch.type]],
  llama_synchronize: [nothing, [address]],
  llama_get_logits: [address, [address]],
  llama_sampler_chain_init: [address, [samplerChainParams.type]],
  llama_sampler_chain_add: [nothing, [address, address]],
  llama_sampler_chain_n: [int32, [address]],
  llama_sampler_chain_remove: [address, [address, int32]],
  llama_sampler_clone: [address, [address]],
  llama_sampler_free: [nothing, [address]],
  llama_sampler_accept: [nothing, [address, int32]],
  llama_sampler_sample: [int32, [address, address, int32]],
  llama_sampler_init_greedy: [address, []],
  llama_sampler_init_dist: [address, [uint32]],
  llama_sampler_init_top_k: [address, [int32]],
  llama_sampler_init_top_p: [address, [float, size]],
  llama_sampler_init_min_p: [address, [float, size]],
  llama_sampler_init_typical: [address, [float, size]],
  llama_sampler_init_temp: [address, [float]],
  llama_sampler_init_temp_ext: [address, [float, float, float]],
  llama_sampler_init_xtc: [address, [float, float, size, uint32]],
  llama_sampler_init_top_n_sigma: [address, [float]],
  llama_sampler_init_mirostat: [address, [int32, uint32, float, float, int32]],
  llama_sampler_init_mirostat_v2: [address, [uint32, float, float]],
  llama_sampler_init_penalties: [address, [int32, int32, float, float, float]],
  llama_sampler_init_dry: [address, [address, float, float, int32, int32, koffi.pointer(string), size]],
} satisfies Record<string, Signature>;

const ggmlSignatures = {
  ggml_backend_load: [address, [string]],
  ggml_backend_load_all_from_path: [nothing, [string]],
  ggml_backend_dev_count: [size, []],
  ggml_backend_dev_get: [address, [size]],
} satisfies Record<string, Signature>;

const ggmlBaseSignatures = {
  ggml_commit: [string, []],
  ggml_log_set: [nothing, [address, address]],
  ggml_backend_dev_name: [string, [address]],
  ggml_backend_dev_description: [string, [address]],
  ggml_backend_dev_type: [int32, [address]],
  ggml_backend_dev_memory: [nothing, [address, sizeOut, sizeOut]],
  ggml_backend_dev_backend_reg: [address, [address]],
  ggml_backend_reg_name: [string, [address]],
  ggml_backend_reg_get_proc_address: [address, [address, string]],
  ggml_threadpool_params_init: [nothing, [address, int32]],
} satisfies Record<string, Signature>;

/** Out-parameters are one-element arrays, buffers are typed arrays or addresses. */
export interface NativeFunctions {
  llama_version(): string;
  llama_backend_init(): void;
  llama_log_set(callback: bigint, data: null): void;
  llama_model_default_params(): ModelParams;
  llama_context_default_params(): ContextParams;
  llama_model_load_from_file(path: string, params: ModelParams): ModelPointer | null;
  llama_model_free(model: ModelPointer): void;
  llama_init_from_model(model: ModelPointer, params: ContextParams): ContextPointer | null;
  llama_free(context: ContextPointer): void;
  llama_attach_threadpool(context: ContextPointer, single: ThreadpoolPointer, batch: ThreadpoolPointer): void;
  llama_n_ctx(context: ContextPointer): number;
  llama_n_ctx_seq(context: ContextPointer): number;
  llama_n_batch(context: ContextPointer): number;
  llama_n_seq_max(context: ContextPointer): number;
  llama_get_memory(context: ContextPointer): MemoryPointer | null;
  llama_model_get_vocab(model: ModelPointer): VocabularyPointer;
  llama_model_n_ctx_train(model: ModelPointer): number;
  llama_model_n_embd(model: ModelPointer): number;
  llama_model_n_layer(model: ModelPointer): number;
  llama_model_n_head(model: ModelPointer): number;
  llama_model_n_head_kv(model: ModelPointer): number;
  llama_model_n_swa(model: ModelPointer): number;
  llama_model_meta_val_str(model: ModelPointer, key: string, buffer: Uint8Array | null, bytes: number): number;
  llama_model_desc(model: ModelPointer, buffer: Uint8Array, bytes: number): number;
  llama_model_ftype(model: ModelPointer): number;
  llama_ftype_name(type: number): string | null;
  llama_model_size(model: ModelPointer): number | bigint;
  llama_model_n_params(model: ModelPointer): number | bigint;
  llama_model_chat_template(model: ModelPointer, name: string | null): string | null;
  llama_model_has_encoder(model: ModelPointer): boolean;
  llama_model_has_decoder(model: ModelPointer): boolean;
  llama_model_is_recurrent(model: ModelPointer): boolean;
  llama_model_is_hybrid(model: ModelPointer): boolean;
  llama_model_is_diffusion(model: ModelPointer): boolean;
  llama_vocab_type(vocabulary: VocabularyPointer): number;
  llama_vocab_n_tokens(vocabulary: VocabularyPointer): number;
  llama_vocab_get_text(vocabulary: VocabularyPointer, token: number): string;
  llama_vocab_get_attr(vocabulary: VocabularyPointer, token: number): number;
  llama_vocab_is_eog(vocabulary: VocabularyPointer, token: number): boolean;
  llama_vocab_bos(vocabulary: VocabularyPointer): number;
  llama_vocab_eos(vocabulary: VocabularyPointer): number;
  llama_vocab_get_add_bos(vocabulary: VocabularyPointer): boolean;
  llama_vocab_get_add_eos(vocabulary: VocabularyPointer): boolean;
  llama_vocab_get_suppress_tokens(vocabulary: VocabularyPointer, count: [number]): bigint | null;
  llama_tokenize(
    vocabulary: VocabularyPointer,
    text: Uint8Array,
    bytes: number,
    tokens: Int32Array,
    capacity: number,
    addSpecial: boolean,
    parseSpecial: boolean,
  ): number;
  llama_token_to_piece(vocabulary: VocabularyPointer, token: number, buffer: Uint8Array, bytes: number, leftStrip: number, special: boolean): number;
  llama_memory_seq_rm(memory: MemoryPointer, sequence: number, from: number, to: number): boolean;
  llama_memory_seq_cp(memory: MemoryPointer, source: number, target: number, from: number, to: number): void;
  llama_memory_seq_pos_max(memory: MemoryPointer, sequence: number): number;
  llama_state_seq_get_size(context: ContextPointer, sequence: number): number;
  llama_state_seq_get_data(context: ContextPointer, target: bigint, bytes: number, sequence: number): number;
  llama_state_seq_set_data(context: ContextPointer, source: bigint, bytes: number, sequence: number): number;
  llama_decode(context: ContextPointer, batch: Batch): number;
  llama_synchronize(context: ContextPointer): void;
  llama_get_logits(context: ContextPointer): bigint | null;
  llama_sampler_chain_init(params: { no_perf: boolean }): SamplerPointer;
  llama_sampler_chain_add(chain: SamplerPointer, sampler: SamplerPointer): void;
  llama_sampler_chain_n(chain: SamplerPointer): number;
  llama_sampler_chain_remove(chain: SamplerPointer, index: number): SamplerPointer;
  llama_sampler_clone(sampler: SamplerPointer): SamplerPointer;
  llama_sampler_free(sampler: SamplerPointer): void;
  llama_sampler_accept(sampler: SamplerPointer, token: number): void;
  llama_sampler_sample(chain: SamplerPointer, context: ContextPointer, batchIndex: number): number;
  llama_sampler_init_greedy(): SamplerPointer;
  llama_sampler_init_dist(seed: number): SamplerPointer;
  llama_sampler_init_top_k(k: number): SamplerPointer;
  llama_sampler_init_top_p(p: number, minKeep: number): SamplerPointer;
  llama_sampler_init_min_p(p: number, minKeep: number): SamplerPointer;
  llama_sampler_init_typical(p: number, minKeep: number): SamplerPointer;
  llama_sampler_init_temp(temperature: number): SamplerPointer;
  llama_sampler_init_temp_ext(temperature: number, range: number, exponent: number): SamplerPointer;
  llama_sampler_init_xtc(probability: number, threshold: number, minKeep: number, seed: number): SamplerPointer;
  llama_sampler_init_top_n_sigma(n: number): SamplerPointer;
  llama_sampler_init_mirostat(tokens: number, seed: number, tau: number, eta: number, m: number): SamplerPointer;
  llama_sampler_init_mirostat_v2(seed: number, tau: number, eta: number): SamplerPointer;
  llama_sampler_init_penalties(tokens: number, lastN: number, repeat: number, frequency: number, presence: number): SamplerPointer;
  llama_sampler_init_dry(
    vocabulary: VocabularyPointer,
    multiplier: number,
    base: number,
    allowedLength: number,
    lastN: number,
    breakers: readonly string[],
    breakerCount: number,
  ): SamplerPointer;
  ggml_backend_load(path: string): BackendPointer | null;
  ggml_backend_load_all_from_path(folder: string): void;
  ggml_backend_dev_count(): number;
  ggml_backend_dev_get(index: number): DevicePointer;
  ggml_commit(): string;
  ggml_log_set(callback: bigint, data: null): void;
  ggml_backend_dev_name(device: DevicePointer): string;
  ggml_backend_dev_description(device: DevicePointer): string;
  ggml_backend_dev_type(device: DevicePointer): number;
  ggml_backend_dev_memory(device: DevicePointer, free: [number], total: [number]): void;
  ggml_backend_dev_backend_reg(device: DevicePointer): BackendPointer;
  ggml_backend_reg_name(backend: BackendPointer): string;
  ggml_backend_reg_get_proc_address(backend: BackendPointer, name: string): bigint | null;
  /** Fills the struct with the defaults. */
  ggml_threadpool_params_init(params: Uint8Array, threads: number): void;
}

export type Native = { readonly [Name in keyof NativeFunctions]: KoffiFunc<NativeFunctions[Name]> };

/** All of them, for `npm run verify:abi`. The compiler checks that every function declared above has one. */
export const nativeSignatures: Readonly<Record<keyof NativeFunctions, Signature>> = { ...llamaSignatures, ...ggmlSignatures, ...ggmlBaseSignatures };

/** Looks the functions up in the loaded libraries; throws koffi's error when one is missing. */
export function bindFunctions(libraries: { readonly base: LibraryHandle; readonly ggml: LibraryHandle; readonly llama: LibraryHandle }): Native {
  const bound: Record<string, unknown> = {};
  const groups = [
    [libraries.llama, llamaSignatures],
    [libraries.ggml, ggmlSignatures],
    [libraries.base, ggmlBaseSignatures],
  ] as const;
  for (const [library, signatures] of groups) {
    for (const [name, [result, parameters]] of Object.entries<Signature>(signatures)) {
      bound[name] = library.func(name, result, [...parameters]);
    }
  }
  return bound as Native;
}

/** Runs a native function on a worker thread; the event loop stays free meanwhile. Typed arrays among the parameters live until it has ended. */
export function callAsync<Parameters extends unknown[], Result>(
  native: KoffiFunc<(...parameters: Parameters) => Result>,
  ...parameters: Parameters
): Promise<Result> {
  return new Promise((resolve, reject) => {
    native.async(...parameters, (error: unknown, result: Result) => {
      // koffi hands the addresses of typed arrays to the thread but keeps no reference to the arrays; this one does.
      void parameters;
      if (error === null || error === undefined) resolve(result);
      else reject(error);
    });
  });
}
