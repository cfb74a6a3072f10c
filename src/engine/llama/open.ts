/** Loads llama.cpp into the process, once, with the backend that fits the machine. */
import koffi from "koffi";
import { backendUnavailable, librariesUnusable, llamaVersionMismatch } from "../../errors.js";
import type { EngineSettings } from "../protocol.js";
import { constants } from "./constants.js";
import { bindFunctions, callAsync, type Native } from "./functions.js";
import { bundledLibraries, type CoreLibraries, type GpuBackend, type LibrarySet, ownLibraries, pinnedLlamaVersion } from "./libraries.js";
import { type LlamaLog, type LogRouter, routeLog } from "./log.js";
import { prepareNativeCalls } from "./native-calls.js";

export interface OpenOptions {
  readonly backend: EngineSettings["backend"];
  /** `bundled`, or a folder with a user's own build of the same release. */
  readonly libraries: string;
  readonly log: LlamaLog;
}

export interface Device {
  readonly name: string;
  readonly description: string;
  readonly kind: "cpu" | "gpu" | "integrated" | "accelerator";
  /** The backend it belongs to, as llama.cpp calls it: CPU, CUDA, Vulkan, MTL, ... */
  readonly backend: string;
  readonly freeBytes: number;
  readonly totalBytes: number;
}

/** The opened libraries. One process opens them once and keeps them. */
export interface Llama {
  readonly native: Native;
  readonly log: LogRouter;
  readonly version: string;
  readonly ggmlCommit: string;
  /** `cpu`, or what the devices computed on are called: cuda, vulkan, metal, rocm, sycl, ... */
  readonly backend: string;
  readonly devices: readonly Device[];
  /** Stops the libraries' logging; models and contexts must be closed before. The libraries themselves stay loaded. */
  close(): void;
}

/**
 * Opens the libraries and the backend. With `auto`, a GPU is used where one is found and the CPU otherwise.
 * Throws coded errors: libraries missing or of another release, backend not available.
 */
export async function openLlama(options: OpenOptions): Promise<Llama> {
  prepareNativeCalls();
  const isBundled = options.libraries === "bundled";
  const libraries = isBundled ? bundledLibraries() : ownLibraries(options.libraries);
  const { native, silence } = loadCore(libraries.core);
  const version = native.llama_version();
  requirePinnedVersion(version, libraries.core.folder);

  const log = routeLog(native, options.log, silence);
  try {
    if (isBundled) await loadGpu(native, libraries, log, options);
    await callAsync(native.ggml_backend_load_all_from_path, libraries.core.folder);
    native.llama_backend_init();
    const devices = listDevices(native);
    const backend = backendOf(devices, options, libraries.core.folder);
    return { native, log, version, ggmlCommit: native.ggml_commit(), backend, devices, close: log.close };
  } catch (error) {
    log.close();
    throw error;
  }
}

/** Throws `engine_version_mismatch` for any release but the one that the layouts were written for. A build from its sources may call itself -dev. */
export function requirePinnedVersion(found: string, folder: string): void {
  if (found.replace(/-dev$/, "") !== pinnedLlamaVersion) throw llamaVersionMismatch({ folder, expected: pinnedLlamaVersion, found });
}

function loadCore(core: CoreLibraries): { native: Native; silence: bigint } {
  try {
    // Global symbols: each library finds the one before it by name, whatever folder it was loaded from.
    const base = koffi.load(core.base, { global: true });
    const ggml = koffi.load(core.ggml, { global: true });
    const llama = koffi.load(core.llama, { global: true });
    // Takes no arguments and may run at any time; called with a log line it does nothing with it.
    const silence = base.symbol("ggml_time_init") as bigint;
    return { native: bindFunctions({ base, ggml, llama }), silence };
  } catch (error) {
    throw librariesUnusable({ folder: core.folder, reason: (error as Error).message }, { cause: error });
  }
}

/** Loads the first GPU backend that works, of those asked for. Without one the CPU remains, unless one was asked for by name. */
async function loadGpu(native: Native, libraries: LibrarySet, router: LogRouter, options: OpenOptions): Promise<void> {
  const { backend, log } = options;
  if (backend === "cpu") return;
  const reasons: string[] = [];
  for (const gpu of libraries.gpus) {
    if (backend !== "auto" && gpu.backend !== backend) continue;
    const reason = await tryGpu(native, gpu.files, router);
    if (reason === undefined) return;
    reasons.push(reason);
    log("info", `The ${gpu.backend} backend is not used: ${reason}`);
  }
  if (backend !== "auto") {
    throw backendUnavailable({
      backend,
      reason: reasons.join("; ") || `node-llama-cpp has none for ${process.platform}-${process.arch}, or its package is not installed.`,
    });
  }
}

/** Undefined when a device is there now, otherwise why not. */
async function tryGpu(native: Native, files: readonly string[], router: LogRouter): Promise<string | undefined> {
  const reasons: string[] = [];
  for (const file of files) {
    const endCollecting = router.collect({ expected: true });
    const before = native.ggml_backend_dev_count();
    const loaded = await callAsync(native.ggml_backend_load, file);
    const lines = endCollecting();
    if (loaded !== null && native.ggml_backend_dev_count() > before) return undefined;
    reasons.push(loaded === null ? (lines[0]?.split(`${file}: `).at(-1) ?? "its library does not load") : "no device was found");
  }
  return reasons.join("; ");
}

function listDevices(native: Native): Device[] {
  return Array.from({ length: native.ggml_backend_dev_count() }, (_, index) => {
    const device = native.ggml_backend_dev_get(index);
    const free: [number] = [0];
    const total: [number] = [0];
    native.ggml_backend_dev_memory(device, free, total);
    return {
      name: native.ggml_backend_dev_name(device),
      description: native.ggml_backend_dev_description(device),
      kind: deviceKinds[native.ggml_backend_dev_type(device)] ?? "accelerator",
      backend: native.ggml_backend_reg_name(native.ggml_backend_dev_backend_reg(device)),
      freeBytes: Number(free[0]),
      totalBytes: Number(total[0]),
    };
  });
}

const deviceKinds: Readonly<Record<number, Device["kind"]>> = {
  [constants.GGML_BACKEND_DEVICE_TYPE_CPU]: "cpu",
  [constants.GGML_BACKEND_DEVICE_TYPE_GPU]: "gpu",
  [constants.GGML_BACKEND_DEVICE_TYPE_IGPU]: "integrated",
};

/** What computes: the GPUs' backend if there are any and they may be used. A user's own build must have the one that was asked for. */
function backendOf(devices: readonly Device[], options: OpenOptions, folder: string): string {
  if (!devices.some((device) => device.kind === "cpu")) throw librariesUnusable({ folder, reason: "no CPU backend in it runs on this machine." });
  const gpu = devices.find((device) => device.kind === "gpu") ?? devices.find((device) => device.kind === "integrated");
  const found = gpu === undefined || options.backend === "cpu" ? "cpu" : (backendNames[gpu.backend.toLowerCase()] ?? gpu.backend.toLowerCase());
  if (options.backend !== "auto" && options.backend !== found) {
    throw backendUnavailable({ backend: options.backend, reason: `the libraries in '${folder}' compute on '${found}'.` });
  }
  return found;
}

const backendNames: Readonly<Record<string, GpuBackend>> = { mtl: "metal" };
