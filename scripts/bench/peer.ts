/** Runs llama-batched-bench, the peer of the engine benchmark: as built here from source, and the same program on the very libraries that Pagoda computes with. */
import { execFileSync, spawnSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { dirname, join } from "node:path";
import type { CoreLibraries } from "../../src/engine/llama/libraries.js";
import type { EngineJob, Throughput } from "./engine-job.js";
import { llamaBuildDirectory, llamaToolPath } from "./llama-tools.js";

export interface Peer {
  readonly name: string;
  readonly program: string;
  readonly environment: NodeJS.ProcessEnv;
}

/** The program as a user would build it. Throws when it has not been built. */
export function builtPeer(): Peer {
  const program = llamaToolPath("llama-batched-bench");
  if (!existsSync(program)) throw new Error("llama-batched-bench is not built: run npm run build:llama-tools first.");
  return { name: "llama.cpp, built here", program, environment: process.env };
}

/**
 * The same program with node-llama-cpp's libraries under it: what differs then is only who calls them.
 * Undefined where this is not possible (it needs Linux).
 */
export function sameLibrariesPeer(libraries: CoreLibraries): Peer | undefined {
  if (process.platform !== "linux") return undefined;
  const folder = join(llamaBuildDirectory(), "on-bundled-libraries");
  const built = dirname(llamaToolPath("llama-batched-bench"));
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  // The program looks for CPU variants beside itself, so it is copied there.
  copyFileSync(join(built, "llama-batched-bench"), join(folder, "llama-batched-bench"));
  const link = (target: string, name: string): void => symlinkSync(target, join(folder, name));
  for (const file of readdirSync(libraries.folder)) if (!file.includes("common")) link(join(libraries.folder, file), file);
  for (const file of ["libllama-batched-bench-impl.so", "libllama-common.so.0"]) link(join(built, file), file);
  // The program asks for the names that the libraries have in its own build.
  link(libraries.llama, "libllama.so.0");
  link(libraries.ggml, "libggml.so.0");
  link(libraries.base, "libggml-base.so.0");
  return { name: "llama.cpp, same libraries", program: join(folder, "llama-batched-bench"), environment: { ...process.env, LD_LIBRARY_PATH: folder } };
}

/** How the peer was compiled, as its build remembers it. */
export function describePeerBuild(): string {
  const cache = execFileSync("cmake", ["-LA", "-N", llamaBuildDirectory()], { encoding: "utf8" });
  const settings = ["CMAKE_BUILD_TYPE", "GGML_NATIVE", "GGML_OPENMP", "GGML_LLAMAFILE", "GGML_CPU_REPACK"];
  return settings.map((name) => `${name}=${new RegExp(`^${name}:\\w+=(.*)$`, "m").exec(cache)?.[1] ?? "?"}`).join(" ");
}

/** One run over all sequence counts. Throws when the program fails or leaves a count out. */
export function runPeer(peer: Peer, job: EngineJob): Throughput[] {
  const { status, stdout, stderr, error } = spawnSync(peer.program, peerParameters(job), { encoding: "utf8", env: peer.environment });
  if (error !== undefined || status !== 0)
    throw new Error(`${peer.program} failed (${error?.message ?? status}): ${(stderr ?? "").trim().split("\n").slice(-3).join(" | ")}`);
  const lines = stdout.split("\n").filter((line) => line.startsWith("{"));
  const found = lines.map((line) => JSON.parse(line) as { pl: number; speed_pp: number; speed_tg: number });
  return job.sequenceCounts.map((sequences) => {
    const line = found.find((candidate) => candidate.pl === sequences);
    if (line === undefined) throw new Error(`${peer.program} left out ${sequences} sequences.`);
    return { sequences, prefill: line.speed_pp, decode: line.speed_tg, decodeLessSampling: line.speed_tg };
  });
}

/** Tokens that one pass computes at most, as Pagoda's context sets it: llama.cpp's own default. */
const passTokens = 512;

function peerParameters(job: EngineJob): string[] {
  const kvTokens = job.contextTokens * Math.max(...job.sequenceCounts);
  const numbers: Record<string, number> = {
    "-c": kvTokens,
    "-b": job.batchTokens,
    "-ub": Math.min(job.batchTokens, passTokens),
    "-npp": job.promptTokens,
    "-ntg": job.outputTokens,
    "-t": job.threads,
    "-tb": job.threads,
  };
  return [
    ...["-m", job.modelPath, "-npl", job.sequenceCounts.join(",")],
    ...Object.entries(numbers).flatMap(([option, value]) => [option, String(value)]),
    ...["-ctk", "f16", "-ctv", "f16", "-fa", job.flashAttention ? "on" : "off", "-fit", "off", "--device", "none"],
    ...(job.kvLayout === "unified" ? ["--kv-unified"] : []),
    ...["--output-format", "jsonl"],
  ];
}
