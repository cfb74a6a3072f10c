/** Builds llama.cpp's own programs from node-llama-cpp's bundle, as the peers that benchmarks and comparisons are run against. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { bundledLlamaRelease, cacheDirectory, ensureLlamaSource, type LlamaSource } from "../llama-source.js";

/** What can be built, with the reason to want it. */
export const llamaTools = {
  "llama-batched-bench": "the peer of npm run bench:engine (the default)",
  "llama-tokenize": "token ids to compare with",
  "llama-completion": "greedy text to compare with",
  "llama-cli": "the chat program",
  "llama-server": "the HTTP server; about 12 minutes on 2 cores",
} as const;

export type LlamaTool = keyof typeof llamaTools;

/** Build folder of one release, so that another release never meets old objects. */
export function llamaBuildDirectory(release: string = bundledLlamaRelease()): string {
  return join(cacheDirectory, "llama-build", release);
}

/** Path of a built program, whether or not it exists yet. */
export function llamaToolPath(tool: LlamaTool, release: string = bundledLlamaRelease()): string {
  return join(llamaBuildDirectory(release), "bin", process.platform === "win32" ? `${tool}.exe` : tool);
}

// Everything that decides speed is llama.cpp's own default: Release, GGML_NATIVE (this very CPU), OpenMP where the compiler has it.
// Switched off is only what the programs do not need here and what would reach for the network.
const cmakeOptions = [
  "-DCMAKE_BUILD_TYPE=Release",
  "-DGGML_NATIVE=ON",
  "-DLLAMA_CURL=OFF",
  "-DLLAMA_OPENSSL=OFF",
  "-DLLAMA_BUILD_TESTS=OFF",
  "-DLLAMA_BUILD_EXAMPLES=OFF",
  "-DLLAMA_BUILD_APP=OFF",
  "-DLLAMA_USE_PREBUILT_UI=OFF",
];

/**
 * Builds the programs at low priority, so that the machine stays usable, and returns their paths in the same order.
 * Throws when cmake or the compiler is missing or fails.
 */
export function buildLlamaTools(wanted: readonly LlamaTool[], jobs: number): string[] {
  const source = ensureLlamaSource();
  const directory = llamaBuildDirectory(source.release);
  if (!existsSync(join(directory, "CMakeCache.txt"))) configure(source, directory);
  runAtLowPriority("cmake", ["--build", directory, "--config", "Release", "--parallel", String(jobs), "--target", ...wanted]);
  return wanted.map((tool) => llamaToolPath(tool, source.release));
}

function configure(source: LlamaSource, directory: string): void {
  runAtLowPriority("cmake", ["-S", source.directory, "-B", directory, ...cmakeOptions]);
}

function runAtLowPriority(program: string, parameters: readonly string[]): void {
  const niced = process.platform !== "win32";
  const result = spawnSync(niced ? "nice" : program, niced ? ["-n", "19", program, ...parameters] : parameters, { stdio: "inherit" });
  if (result.error !== undefined) throw new Error(`${program} could not be started: ${result.error.message}. Building needs cmake and a C++17 compiler.`);
  if (result.status === 127) throw new Error(`${program} is not installed. Building needs cmake and a C++17 compiler.`);
  if (result.status !== 0) throw new Error(`${program} ended with ${result.status ?? result.signal}.`);
}
