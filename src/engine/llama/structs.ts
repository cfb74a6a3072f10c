/** The C structs of llama.h that cross the boundary, as koffi layouts. `npm run verify:abi` proves them against the headers. */
import koffi, { type TypeObject } from "koffi";

/** A native address. The name keeps one kind of object from being passed for another. */
export type Pointer<Name extends string> = bigint & { readonly pointsTo?: Name };

const address = koffi.pointer(koffi.types.void);

/** One layout: its C name and its fields in order. Enums are 32-bit integers. */
export interface StructLayout {
  readonly cName: string;
  readonly type: TypeObject;
  readonly fields: readonly string[];
}

function layout(cName: string, fields: Record<string, TypeObject>): StructLayout {
  return { cName, type: koffi.struct(fields), fields: Object.keys(fields) };
}

const { int32_t: int32, uint32_t: uint32, size_t: size, float, bool } = koffi.types;

export const modelParams = layout("llama_model_params", {
  devices: address,
  tensor_buft_overrides: address,
  n_gpu_layers: int32,
  split_mode: int32,
  load_mode: int32,
  lazy_mode: int32,
  main_gpu: int32,
  tensor_split: address,
  progress_callback: address,
  progress_callback_user_data: address,
  kv_overrides: address,
  vocab_only: bool,
  check_tensors: bool,
  use_extra_bufts: bool,
  no_host: bool,
  no_alloc: bool,
  load_mtp: bool,
});

export const contextParams = layout("llama_context_params", {
  n_ctx: uint32,
  n_batch: uint32,
  n_ubatch: uint32,
  n_seq_max: uint32,
  n_rs_seq: uint32,
  n_outputs_max: uint32,
  n_outputs_max_per_seq: uint32,
  n_threads: int32,
  n_threads_batch: int32,
  ctx_type: int32,
  rope_scaling_type: int32,
  pooling_type: int32,
  attention_type: int32,
  flash_attn_type: int32,
  rope_freq_base: float,
  rope_freq_scale: float,
  yarn_ext_factor: float,
  yarn_attn_factor: float,
  yarn_beta_fast: float,
  yarn_beta_slow: float,
  yarn_orig_ctx: uint32,
  defrag_thold: float,
  cb_eval: address,
  cb_eval_user_data: address,
  type_k: int32,
  type_v: int32,
  abort_callback: address,
  abort_callback_data: address,
  embeddings: bool,
  offload_kqv: bool,
  no_perf: bool,
  op_offload: bool,
  swa_full: bool,
  kv_unified: bool,
  samplers: address,
  n_samplers: size,
  ctx_other: address,
});

export const batch = layout("llama_batch", {
  n_tokens: int32,
  token: address,
  embd: address,
  pos: address,
  n_seq_id: address,
  seq_id: address,
  logits: address,
});

export const samplerChainParams = layout("llama_sampler_chain_params", { no_perf: bool });

export const threadpoolParams = layout("ggml_threadpool_params", {
  cpumask: koffi.array(bool, 512),
  n_threads: int32,
  prio: int32,
  poll: uint32,
  strict_cpu: bool,
  paused: bool,
});

export const layouts: readonly StructLayout[] = [modelParams, contextParams, batch, samplerChainParams, threadpoolParams];
/** The fields of the parameter structs that Pagoda sets; the rest keep the library's defaults. */
export interface ModelParams {
  devices: bigint | null;
  n_gpu_layers: number;
  progress_callback: bigint | null;
  vocab_only: boolean;
}

export interface ContextParams {
  n_ctx: number;
  n_batch: number;
  n_ubatch: number;
  n_seq_max: number;
  n_outputs_max: number;
  n_outputs_max_per_seq: number;
  n_threads: number;
  n_threads_batch: number;
  flash_attn_type: number;
  type_k: number;
  type_v: number;
  offload_kqv: boolean;
  no_perf: boolean;
  op_offload: boolean;
  swa_full: boolean;
  kv_unified: boolean;
}

export interface Batch {
  n_tokens: number;
  token: bigint;
  embd: bigint | null;
  pos: bigint;
  n_seq_id: bigint;
  seq_id: bigint;
  logits: bigint;
}
