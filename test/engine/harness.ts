/** What the tests of engine supervision share: settings, requests, and ways to watch streams. */
import { fileURLToPath } from "node:url";
import { createEngineClient, type EngineClientOptions, type EngineLog, type Generation, type LocalEngineClient } from "../../src/engine/client/index.js";
import type { ChoiceEvent, EngineSettings, GenerateRequest } from "../../src/engine/protocol.js";

export const simulatedEntry = fileURLToPath(new URL("./simulated-main.ts", import.meta.url));

export const quietLog: EngineLog = { debug() {}, info() {}, warn() {}, error() {} };

export interface SimulatedSettings extends Partial<EngineSettings> {
  /** See simulated-main.ts. */
  readonly behaviour?: string;
}

export function simulatedSettings({ behaviour = "", ...settings }: SimulatedSettings = {}): EngineSettings {
  return {
    modelPath: `simulated:?${behaviour}`,
    backend: "cpu",
    libraries: "bundled",
    threads: 1,
    gpuLayers: 0,
    flashAttention: "auto",
    kvLayout: "unified",
    kvTokens: 16_384,
    kvPageTokens: 16,
    kvType: "f16",
    maxSequences: 16,
    maxBatchTokens: 128,
    maxQueuedRequests: 256,
    maxQueuedTokens: "auto",
    sharePrefixes: true,
    ...settings,
  };
}

export function startSimulated(settings: SimulatedSettings = {}, options: Partial<EngineClientOptions> = {}): LocalEngineClient {
  return createEngineClient({
    modelName: "simulated",
    settings: simulatedSettings(settings),
    replicas: 1,
    engineWaitMs: 30_000,
    log: quietLog,
    entry: simulatedEntry,
    ...options,
  });
}

export interface SimulatedRequest {
  readonly id: string;
  readonly promptTokens?: readonly number[];
  readonly maxTokens?: number;
  readonly choices?: number;
}

export function simulatedRequest({ id, promptTokens = [1, 2, 3], maxTokens = 20, choices = 1 }: SimulatedRequest): GenerateRequest {
  return {
    id,
    promptTokens,
    maxTokens,
    choices: Array.from({ length: choices }, (_, index) => ({ index, seed: index, outputTokens: [] })),
    sampling: { temperature: 0 },
    ignoreEndOfGeneration: true,
    salt: "",
  };
}

/** A stream as its consumer saw it, complete when `done` resolves. */
export interface WatchedStream {
  readonly events: ChoiceEvent[];
  tokens(index?: number): number[];
  readonly done: Promise<void>;
}

/** Reads a stream to its end; `onEvent` sees each event as it comes. */
export function watch(generation: Generation, onEvent: (event: ChoiceEvent) => void = () => undefined): WatchedStream {
  const events: ChoiceEvent[] = [];
  const read = async (): Promise<void> => {
    for await (const event of generation.events) {
      events.push(event);
      onEvent(event);
    }
  };
  return {
    events,
    tokens: (index = 0) => events.flatMap((event) => (event.index === index && event.token !== undefined ? [event.token] : [])),
    done: read(),
  };
}

/** Ends every engine process of the client at once, as an operator or the system's memory killer would. */
export function killEngines(client: LocalEngineClient): void {
  const pids = client.pids();
  if (pids.length === 0) throw new Error("There is no engine process to kill.");
  for (const pid of pids) process.kill(pid, "SIGKILL");
}

/** Resolves when the process does not exist any more. */
export async function processGone(pid: number): Promise<void> {
  while (isAlive(pid)) await new Promise((resolve) => setTimeout(resolve, 10));
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

/** Resolves when the condition holds, looking each time something can have changed. */
export async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setTimeout(resolve, 5));
}
