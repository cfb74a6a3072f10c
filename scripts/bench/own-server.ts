/** Starts and stops a whole `pagoda serve` for benchmarks, and asks it. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { repositoryRoot } from "../llama-source.js";
import { childrenOf } from "./processes.js";

export interface OwnServer {
  readonly gatewayPid: number;
  readonly enginePid: number;
  /** Sends a chat request with these fields to the server's model; throws when it is not answered with 200. */
  chat(fields: object): Promise<void>;
  stop(): Promise<void>;
}

const readyTimeoutMs = 60_000;

/** Starts a server on a free port. Throws with the server's last output when it does not get ready. */
export async function startOwnServer(parameters: readonly string[]): Promise<OwnServer> {
  const port = await freePort();
  const command = [join(repositoryRoot, "bin", "pagoda.js"), "serve", "--port", String(port), ...parameters];
  const server = spawn(process.execPath, command, { stdio: ["ignore", "pipe", "pipe"] });
  try {
    await untilReady(server);
    const gatewayPid = server.pid as number;
    const [enginePid] = childrenOf(gatewayPid);
    if (enginePid === undefined) throw new Error("pagoda serve has started no engine process.");
    return { gatewayPid, enginePid, chat: (fields) => chat(port, fields), stop: () => stop(server) };
  } catch (error) {
    await stop(server);
    throw error;
  }
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

async function chat(port: number, fields: object): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(fields),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`A chat request was answered with ${response.status}: ${text.slice(0, 300)}`);
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
