/** Measures the memory of a whole `pagoda serve`: the gateway and its engine process, idle and after work. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { repositoryRoot } from "../llama-source.js";
import type { EngineJob } from "./engine-job.js";
import { childrenOf, residentBytes } from "./processes.js";

export interface MemoryFigures {
  readonly gatewayIdleBytes: number;
  readonly engineIdleBytes: number;
  /** After the requests, when all of the model has been read and all of the cache was written at some time. */
  readonly gatewayAfterWorkBytes: number;
  readonly engineAfterWorkBytes: number;
  readonly requests: number;
}

const readyTimeoutMs = 60_000;
/** Time for what starting up left behind to be collected. */
const settleMs = 3_000;

/** Starts a server on a free port, measures, and stops it. Throws with the server's last output when it does not get ready. */
export async function measureMemory(job: EngineJob, requests: number): Promise<MemoryFigures> {
  const port = await freePort();
  const server = spawn(process.execPath, [join(repositoryRoot, "bin", "pagoda.js"), ...serveParameters(job, port)], { stdio: ["ignore", "pipe", "pipe"] });
  try {
    await untilReady(server);
    await sleep(settleMs);
    const gateway = server.pid as number;
    const engine = childrenOf(gateway)[0];
    if (engine === undefined) throw new Error("pagoda serve has started no engine process.");
    const idle = { gatewayIdleBytes: residentBytes(gateway), engineIdleBytes: residentBytes(engine) };
    const model = await servedModel(port);
    await Promise.all(Array.from({ length: requests }, (_, index) => chat(port, model, index)));
    await sleep(settleMs);
    return { ...idle, gatewayAfterWorkBytes: residentBytes(gateway), engineAfterWorkBytes: residentBytes(engine), requests };
  } finally {
    await stop(server);
  }
}

function serveParameters(job: EngineJob, port: number): string[] {
  const sequences = Math.max(...job.sequenceCounts);
  const settings = {
    "engine.backend": "cpu",
    "engine.threads": job.threads,
    "scheduler.maxSequences": sequences,
    "scheduler.maxBatchTokens": job.batchTokens,
    "kv.layout": job.kvLayout,
    "kv.tokens": job.contextTokens * sequences,
  };
  return ["serve", "--model", job.modelPath, "--port", String(port), ...Object.entries(settings).flatMap(([key, value]) => ["--set", `${key}=${value}`])];
}

async function untilReady(server: ChildProcess): Promise<void> {
  const lines: string[] = [];
  const isReady = new Promise<boolean>((resolve) => {
    for (const stream of [server.stdout, server.stderr]) {
      if (stream === null) continue;
      createInterface(stream).on("line", (line) => {
        lines.push(line);
        if (line.includes("pagoda ready on")) resolve(true);
      });
    }
    server.once("exit", () => resolve(false));
    void sleep(readyTimeoutMs, undefined, { ref: false }).then(() => resolve(false));
  });
  if (!(await isReady)) throw new Error(`pagoda serve did not get ready: ${lines.slice(-3).join(" | ")}`);
}

/** A prompt of some length, different in every request, and an answer of some length. */
async function chat(port: number, model: string, index: number): Promise<void> {
  const body = { model, messages: [{ role: "user", content: `${index} and so on. `.repeat(10) }], max_tokens: 32, temperature: 0, ignore_eos: true };
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`A chat request was answered with ${response.status}: ${text.slice(0, 300)}`);
}

async function servedModel(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/models`);
  const list = (await response.json()) as { data: { id: string }[] };
  const id = list.data[0]?.id;
  if (id === undefined) throw new Error("pagoda serve lists no model.");
  return id;
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, "127.0.0.1");
  await once(listener, "listening");
  const address = listener.address();
  listener.close();
  await once(listener, "close");
  if (address === null || typeof address === "string") throw new Error("The system gave no port.");
  return address.port;
}

async function stop(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const exited = once(server, "exit");
  server.kill("SIGTERM");
  const isLate = Symbol("late");
  const first = await Promise.race([exited, sleep(10_000, isLate, { ref: false })]);
  if (first !== isLate) return;
  server.kill("SIGKILL");
  await exited;
}
