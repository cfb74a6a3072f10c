/**
 * Compute threads that stay. Without a pool of its own a context starts new threads for every computation; the system tends to put a new thread
 * on the core of the one that started it, where both wait for each other until they are moved apart, which can double the time of a short step.
 */
import koffi from "koffi";
import { constants } from "./constants.js";
import type { BackendPointer, ContextPointer, Native, ThreadpoolPointer } from "./functions.js";
import { threadpoolParams } from "./structs.js";

const address = koffi.pointer(koffi.types.void);
const newProto = koffi.proto("ggml_threadpool_new", address, [address]);
const freeProto = koffi.proto("ggml_threadpool_free", koffi.types.void, [address]);

/** Gives the context a pool of `threads` threads. The result frees it, to be called when the context is gone; undefined where the CPU backend has no pools. */
export function attachThreadpool(native: Native, context: ContextPointer, threads: number): (() => void) | undefined {
  const cpu = cpuBackend(native);
  const makePool = cpu === undefined ? null : native.ggml_backend_reg_get_proc_address(cpu, "ggml_threadpool_new");
  const freePool = cpu === undefined ? null : native.ggml_backend_reg_get_proc_address(cpu, "ggml_threadpool_free");
  if (makePool === null || freePool === null) return undefined;
  const pool = koffi.call(makePool, newProto, poolParams(native, threads)) as ThreadpoolPointer | null;
  if (pool === null) return undefined;
  native.llama_attach_threadpool(context, pool, pool);
  return () => koffi.call(freePool, freeProto, pool);
}

function poolParams(native: Native, threads: number): Uint8Array {
  const params = new Uint8Array(koffi.sizeof(threadpoolParams.type));
  native.ggml_threadpool_params_init(params, threads);
  // Between two steps the threads sleep: spinning on would take a core from whoever samples, answers, or shares the machine.
  new DataView(params.buffer).setUint32(koffi.offsetof(threadpoolParams.type, "poll"), 0, true);
  return params;
}

function cpuBackend(native: Native): BackendPointer | undefined {
  for (let index = 0; index < native.ggml_backend_dev_count(); index++) {
    const device = native.ggml_backend_dev_get(index);
    if (native.ggml_backend_dev_type(device) === constants.GGML_BACKEND_DEVICE_TYPE_CPU) return native.ggml_backend_dev_backend_reg(device);
  }
  return undefined;
}
