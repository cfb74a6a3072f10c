/** One life of one engine process: fork, handshake, messages, end. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { asPagodaError, fromWireError, type PagodaError, protocolMismatch } from "../../errors.js";
import { type EngineSettings, type FromEngine, protocolVersion, type ToEngine } from "../protocol.js";
import { createOutputLines } from "./output-lines.js";

/** Where the client writes what an operator should know; a pino logger fits. */
export interface EngineLog {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

export interface EngineProcessOptions {
  readonly modelName: string;
  readonly settings: EngineSettings;
  /** The module that the process runs. */
  readonly entry: string;
  readonly log: EngineLog;
}

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: string | null;
  /** The process said that it cannot serve this model with these settings, or the two sides do not understand each other. */
  readonly refusal: PagodaError | undefined;
  /** What the process said was wrong before it ended. */
  readonly fatal: PagodaError | undefined;
  /** The last lines it wrote, oldest first. */
  readonly lastLines: readonly string[];
}

export interface EngineProcessHandlers {
  onMessage(message: FromEngine): void;
  /** Called once, after the last message. */
  onExit(exit: ProcessExit): void;
}

export interface EngineProcess {
  readonly pid: number | undefined;
  /** Messages to a process that has just died are lost without a word; its exit tells. */
  send(message: ToEngine): void;
  kill(): void;
}

const keptLines = 20;

/** An engine's own objects are few and short-lived, and memory that its heap holds on to is missing for models; the engine collects what loading left. */
const heapFlags = ["--max-semi-space-size=2", "--expose-gc"];

/** The engine process's own module, beside this one: built, or in TypeScript where this one is. */
export function defaultEntry(): string {
  const extension = import.meta.url.endsWith(".ts") ? "ts" : "js";
  return fileURLToPath(new URL(`../runner/main.${extension}`, import.meta.url));
}

/** Starts a process and has it load the model as soon as both have agreed on the protocol. */
export function startEngineProcess(options: EngineProcessOptions, handlers: EngineProcessHandlers): EngineProcess {
  const { entry, log, modelName } = options;
  // The parent's own flags (a debugger's port, a loader) are not for the child.
  const execArgv = [...heapFlags, ...(entry.endsWith(".ts") ? ["--import", "tsx"] : [])];
  const child = fork(entry, [String(process.pid)], { execArgv, stdio: ["ignore", "pipe", "pipe", "ipc"] });
  const lines = createOutputLines(keptLines, (line) => log.debug({ model: modelName, pid: child.pid }, line));
  lines.watch(child.stdout);
  lines.watch(child.stderr);

  let refusal: PagodaError | undefined;
  let fatal: PagodaError | undefined;
  let hasEnded = false;

  const send = (message: ToEngine): void => {
    child.send(message, (error) => {
      if (error !== null) log.debug({ model: modelName, pid: child.pid, err: error }, `a '${message.type}' message did not reach the engine`);
    });
  };
  const end = (code: number | null, signal: string | null): void => {
    if (hasEnded) return;
    hasEnded = true;
    handlers.onExit({ code, signal, refusal, fatal, lastLines: [...lines.last] });
  };

  child.on("message", (raw) => {
    const message = raw as FromEngine;
    if (message.type === "hello") {
      if (message.protocolVersion === protocolVersion) return send({ type: "load", protocolVersion, settings: options.settings });
      refusal = protocolMismatch({ own: protocolVersion, other: message.protocolVersion });
      child.kill("SIGKILL");
      return;
    }
    if (message.type === "loadFailed") refusal = fromWireError(message.error);
    if (message.type === "fatal") fatal = fromWireError(message.error);
    if (refusal === undefined) handlers.onMessage(message);
  });
  // 'close' comes after the exit and after every message and line was read, so nothing that the engine said is lost.
  child.on("close", end);
  child.on("error", (error) => {
    if (child.pid !== undefined) return log.warn({ model: modelName, pid: child.pid, err: error }, "trouble with the engine process");
    fatal = asPagodaError(error); // it could not be started at all, and no 'close' follows
    end(null, null);
  });

  return { pid: child.pid, send, kill: () => void child.kill("SIGKILL") };
}
