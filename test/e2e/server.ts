/** Runs the product itself, `pagoda serve`, and reads what it tells: its address, its engines, its figures, its log. */
import { copyFileSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, vi } from "vitest";
import { type Command, runPagoda } from "../cli/command.js";
import { processGone } from "../engine/harness.js";
import { parseExposition } from "../gateway/exposition.js";

/** One line of the server's log. */
export interface LogLine {
  readonly level: string;
  readonly msg: string;
  readonly pid?: number;
  readonly code?: string | number;
}

export interface Server {
  readonly url: string;
  readonly port: number;
  readonly command: Command;
  readonly log: readonly LogLine[];
  /** Process ids of the engines that are ready, oldest first. */
  engines(): readonly number[];
  /** Kills an engine process as an operator or the system's memory killer would; resolves when it is gone. */
  killEngine(pid?: number): Promise<void>;
  /** The sum of the samples of this name that have all these labels; fails when there is none. */
  figure(name: string, labels?: Readonly<Record<string, string>>): Promise<number>;
  figures(): Promise<ReadonlyMap<string, number>>;
  post(body: unknown, init?: RequestInit): Promise<Response>;
  /** Asks the server to end, and resolves when it has. */
  stop(): ReturnType<typeof endOf>;
}

/** Starts a server with the built-in model, or those of the settings, and resolves when it says that it is ready. */
export async function startServer(...settings: readonly string[]): Promise<Server> {
  // Compute threads spin, and other tests run beside this one: more threads than one make all of them slower.
  const fixed = ["engine.backend=cpu", "engine.threads=1", "observability.logs.format=json"];
  const command = runPagoda("serve", "--port", "0", ...[...fixed, ...settings].flatMap((setting) => ["--set", setting]));
  const log = watchLog(command);
  const [, url = ""] = await command.printed(/^pagoda ready on (http:\/\/127\.0\.0\.1:\d+)$/m);

  const figures = async () => parseExposition(await (await fetch(`${url}/metrics`)).text());
  return {
    url,
    port: Number(new URL(url).port),
    command,
    log: log.lines,
    engines: () => [...log.engines],
    killEngine: (pid) => killed(() => pid ?? [...log.engines][0]),
    figures,
    figure: async (name, labels = {}) => sumOf(await figures(), name, labels),
    post: (body, init) =>
      fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body), ...init }),
    stop: () => endOf(command),
  };
}

/** Kills the process once there is one, and waits for its end. */
async function killed(pidOf: () => number | undefined): Promise<void> {
  const pid = await vi.waitFor(() => {
    const now = pidOf();
    if (now === undefined) throw new Error("There is no engine to kill.");
    process.kill(now, "SIGKILL");
    return now;
  });
  await processGone(pid);
}

async function endOf(command: Command) {
  command.process.kill("SIGTERM");
  return command.ended;
}

interface WatchedLog {
  readonly lines: LogLine[];
  readonly engines: Set<number>;
}

/** The log's lines as they come, and the engines that are up according to them. */
function watchLog({ process: { stderr } }: Command): WatchedLog {
  const log: WatchedLog = { lines: [], engines: new Set() };
  let rest = "";
  stderr?.on("data", (text: string) => {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      const parsed: LogLine = line.startsWith("{") ? JSON.parse(line) : { level: "none", msg: line };
      log.lines.push(parsed);
      if (parsed.pid === undefined) continue;
      if (parsed.msg === "engine ready") log.engines.add(parsed.pid);
      if (/^engine process (died|ended)/.test(parsed.msg)) log.engines.delete(parsed.pid);
    }
  });
  return log;
}

function sumOf(figures: ReadonlyMap<string, number>, name: string, labels: Readonly<Record<string, string>>): number {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const values = [...figures].filter(([sample]) => sample.split("{", 1)[0] === name && wanted.every((label) => sample.includes(label)));
  if (values.length === 0) throw new Error(`/metrics has no sample ${name} with ${JSON.stringify(labels)}.`);
  return values.reduce((sum, [, value]) => sum + value, 0);
}

/** Resolves when the server has nothing to do and nothing in its KV cache belongs to a request. */
export async function untilIdle(server: Server): Promise<void> {
  const load = async () => ({
    running: await server.figure("vllm:num_requests_running"),
    waiting: await server.figure("vllm:num_requests_waiting"),
    kvUsage: await server.figure("vllm:kv_cache_usage_perc"),
    usedPages: await server.figure("pagoda_kv_pages", { state: "used" }),
  });
  await vi.waitFor(async () => expect(await load()).toEqual({ running: 0, waiting: 0, kvUsage: 0, usedPages: 0 }), { timeout: 20_000, interval: 10 });
}

/** Resolves when a figure, summed over all that has its name and labels, has this value. */
export async function untilFigure(server: Server, name: string, value: number, labels: Readonly<Record<string, string>> = {}): Promise<void> {
  await vi.waitFor(async () => expect(await server.figure(name, labels)).toBe(value), { timeout: 20_000, interval: 5 });
}

/** Resolves when so many engines are ready. */
export async function untilEngines(server: Server, count: number): Promise<void> {
  await vi.waitFor(() => expect(server.engines()).toHaveLength(count), { timeout: 20_000, interval: 5 });
}

/** A copy of the built-in model that can be hidden: then an engine that dies cannot be replaced, for as long as the test wants. */
export interface HideableModel {
  readonly path: string;
  hide(): void;
  show(): void;
  remove(): void;
}

export function copyModel(): HideableModel {
  const folder = mkdtempSync(join(tmpdir(), "pagoda-e2e-"));
  const path = join(folder, "copy.gguf");
  const hidden = join(folder, "hidden.gguf");
  copyFileSync(fileURLToPath(new URL("../../models/pagoda-tiny/pagoda-tiny.gguf", import.meta.url)), path);
  return {
    path,
    hide: () => renameSync(path, hidden),
    show: () => renameSync(hidden, path),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}
