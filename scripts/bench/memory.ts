/** Measures the memory of a whole `pagoda serve`: the gateway and its engine process, idle and after work. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EngineJob } from "./engine-job.js";
import { startOwnServer } from "./own-server.js";
import { residentBytes } from "./processes.js";

export interface MemoryFigures {
  readonly gatewayIdleBytes: number;
  readonly engineIdleBytes: number;
  /** After the requests, when all of the model has been read and all of the cache was written at some time. */
  readonly gatewayAfterWorkBytes: number;
  readonly engineAfterWorkBytes: number;
  readonly requests: number;
}

/** Time for what starting up left behind to be collected. */
const settleMs = 3_000;

/** Starts a server, measures, and stops it. */
export async function measureMemory(job: EngineJob, requests: number): Promise<MemoryFigures> {
  const server = await startOwnServer(serveParameters(job));
  const { gatewayPid, enginePid } = server;
  try {
    await sleep(settleMs);
    const idle = { gatewayIdleBytes: residentBytes(gatewayPid), engineIdleBytes: residentBytes(enginePid) };
    await Promise.all(Array.from({ length: requests }, (_, index) => server.chat(requestOf(index))));
    await sleep(settleMs);
    return { ...idle, gatewayAfterWorkBytes: residentBytes(gatewayPid), engineAfterWorkBytes: residentBytes(enginePid), requests };
  } finally {
    await server.stop();
  }
}

function serveParameters(job: EngineJob): string[] {
  const sequences = Math.max(...job.sequenceCounts);
  const settings = {
    "engine.backend": "cpu",
    "engine.threads": job.threads,
    "scheduler.maxSequences": sequences,
    "scheduler.maxBatchTokens": job.batchTokens,
    "kv.layout": job.kvLayout,
    "kv.tokens": job.contextTokens * sequences,
  };
  return ["--model", job.modelPath, ...Object.entries(settings).flatMap(([key, value]) => ["--set", `${key}=${value}`])];
}

/** A prompt of some length, different in every request, and an answer of some length. */
function requestOf(index: number): object {
  return { messages: [{ role: "user", content: `${index} and so on. `.repeat(10) }], max_tokens: 32, temperature: 0, ignore_eos: true };
}
