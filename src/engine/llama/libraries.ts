/** Where the shared libraries lie: the packages' folders and file names per platform, or a user's own build. */
import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { librariesUnusable } from "../../errors.js";

export type GpuBackend = "cuda" | "vulkan" | "metal";

/** The release of llama.cpp whose layouts and functions this folder describes. */
export const pinnedLlamaVersion = "0.4.0";

/** As the distributed files carry it in their names. */
const fileVersion = `.v${pinnedLlamaVersion}`;

export interface CoreLibraries {
  readonly folder: string;
  readonly base: string;
  readonly ggml: string;
  readonly llama: string;
}

/** One loadable GPU backend; the files are tried in order, for newer and older drivers. */
export interface GpuLibrary {
  readonly backend: GpuBackend;
  readonly files: readonly string[];
}

export interface LibrarySet {
  readonly core: CoreLibraries;
  readonly gpus: readonly GpuLibrary[];
}

interface PlatformPackages {
  /** The package with llama.cpp itself and its CPU backends. */
  readonly core: string;
  /** Between `lib` and the version in file names: `libllama.metal.v0.4.0.dylib`. */
  readonly coreTag?: string;
  readonly cuda?: readonly string[];
  readonly vulkan?: string;
  readonly metal?: string;
}

const platforms: Readonly<Record<string, PlatformPackages>> = {
  "linux-x64": { core: "linux-x64", cuda: ["linux-x64-cuda", "linux-x64-cuda-ext"], vulkan: "linux-x64-vulkan" },
  "linux-arm64": { core: "linux-arm64" },
  "linux-arm": { core: "linux-armv7l" },
  "linux-riscv64": { core: "linux-riscv64" },
  "darwin-arm64": { core: "mac-arm64-metal", coreTag: "metal", metal: "mac-arm64-metal" },
  "darwin-x64": { core: "mac-x64" },
  "win32-x64": { core: "win-x64", cuda: ["win-x64-cuda", "win-x64-cuda-ext"], vulkan: "win-x64-vulkan" },
  "win32-arm64": { core: "win-arm64" },
};

const require = createRequire(import.meta.url);

/**
 * The libraries that node-llama-cpp distributes for this machine.
 * The GPU packages hold the same core libraries once more; of them only the backend itself is taken, and loaded into the core:
 * so a GPU that turns out to be missing costs nothing, where a second core in the process would clash with the first.
 */
export function bundledLibraries(platform: string = `${process.platform}-${process.arch}`): LibrarySet {
  const packages = platforms[platform];
  if (packages === undefined) throw librariesUnusable({ folder: "node-llama-cpp", reason: `there are none for ${platform}.` });
  const folder = packageFolder(packages.core);
  if (folder === undefined) {
    throw librariesUnusable({ folder: `@node-llama-cpp/${packages.core}`, reason: "the package is not installed; install without --omit=optional." });
  }
  const tag = packages.coreTag === undefined ? "" : `.${packages.coreTag}`;
  const core = {
    folder,
    base: join(folder, coreFile(platform, "ggml-base", "")),
    ggml: join(folder, coreFile(platform, `ggml${tag}`, fileVersion)),
    llama: join(folder, coreFile(platform, `llama${tag}`, fileVersion)),
  };
  return { core, gpus: [...cudaLibrary(platform, packages), ...vulkanLibrary(platform, packages), ...metalLibrary(folder, packages)] };
}

function cudaLibrary(platform: string, packages: PlatformPackages): GpuLibrary[] {
  const [main, older] = (packages.cuda ?? []).map(packageFolder);
  const file = backendFile(platform, "ggml-cuda");
  // The older one is built for CUDA 12 and lies in a folder of the second package.
  const files = [main && join(main, file), older && join(older, "fallback", file)].filter((path) => path !== undefined && existsSync(path));
  return files.length === 0 ? [] : [{ backend: "cuda", files: files as string[] }];
}

function vulkanLibrary(platform: string, packages: PlatformPackages): GpuLibrary[] {
  const folder = packages.vulkan && packageFolder(packages.vulkan);
  return folder ? [{ backend: "vulkan", files: [join(folder, backendFile(platform, "ggml-vulkan"))] }] : [];
}

function metalLibrary(coreFolder: string, packages: PlatformPackages): GpuLibrary[] {
  // macOS loads its backends as .so, although the core is a .dylib.
  return packages.metal ? [{ backend: "metal", files: [join(coreFolder, "libggml-metal.so")] }] : [];
}

/** The libraries of a user's own build: plain names, with or without a version after them. */
export function ownLibraries(folder: string): LibrarySet {
  const platform = `${process.platform}-${process.arch}`;
  const find = (name: string): string => {
    const candidates = [coreFile(platform, name, ""), coreFile(platform, name, fileVersion), `${coreFile(platform, name, "")}.0`];
    const found = candidates.map((file) => join(folder, file)).find((path) => existsSync(path));
    if (found === undefined) throw librariesUnusable({ folder, reason: `there is no ${candidates[0]} in it.` });
    return found;
  };
  return { core: { folder, base: find("ggml-base"), ggml: find("ggml"), llama: find("llama") }, gpus: [] };
}

function packageFolder(name: string): string | undefined {
  try {
    // The packages export their entry alone, so the folder is reached from there: dist/index.js and bins/ are neighbours.
    const entry = require.resolve(`@node-llama-cpp/${name}`);
    return join(dirname(entry), "..", "bins", name.replace("-cuda-ext", "-cuda"));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "MODULE_NOT_FOUND") return undefined;
    throw error;
  }
}

function coreFile(platform: string, name: string, version: string): string {
  if (platform.startsWith("win32")) return `${name}${version}.dll`;
  return `lib${name}${version}.${platform.startsWith("darwin") ? "dylib" : "so"}`;
}

function backendFile(platform: string, name: string): string {
  return platform.startsWith("win32") ? `${name}.dll` : `lib${name}.so`;
}
