/** One place for an engine, kept filled: starts its process, starts it again after a death, stops it. */
import type { EngineInfo, EngineSettings, EngineStats, FromEngine, ModelInfo, ToEngine } from "../protocol.js";
import { type EngineLog, type EngineProcess, type ProcessExit, startEngineProcess } from "./engine-process.js";
import { restartDelayMs } from "./restart-backoff.js";

export interface ReplicaHandlers {
  onReady(model: ModelInfo, engine: EngineInfo): void;
  /** Everything that a ready engine says. */
  onMessage(message: FromEngine): void;
  /** Decides what follows. Called once for each death, after the last message. */
  onExit(exit: ProcessExit): AfterDeath;
}

/** What follows the death of an engine: nothing, another start of what was up, or another attempt at the client's very first start. */
export type AfterDeath = "end" | "restart" | "firstStart";

export interface ReplicaOptions {
  readonly modelName: string;
  readonly entry: string;
  readonly log: EngineLog;
  /** Asked at each start. */
  settings(): EngineSettings;
}

export interface Replica {
  readonly isUp: boolean;
  /** The last step's figures; undefined while it is down. */
  readonly stats: EngineStats | undefined;
  readonly pid: number | undefined;
  start(): void;
  send(message: ToEngine): void;
  /** Asks the engine to end, kills it if it has not after `patienceMs`, and resolves when it is gone. It is not started again. */
  stop(patienceMs: number): Promise<void>;
}

export function createReplica(options: ReplicaOptions, handlers: ReplicaHandlers): Replica {
  const { modelName, entry, log } = options;
  let current: EngineProcess | undefined;
  let isUp = false;
  let isStopped = false;
  let stats: EngineStats | undefined;
  let deathsWithoutProgress = 0;
  let restartTimer: NodeJS.Timeout | undefined;
  let whenGone: (() => void) | undefined;

  const start = (): void => {
    if (isStopped) return;
    current = startEngineProcess({ modelName, entry, log, settings: options.settings() }, { onMessage, onExit });
    log.debug({ model: modelName, pid: current.pid }, "engine process started");
  };

  const onMessage = (message: FromEngine): void => {
    if (message.type === "ready") {
      isUp = true;
      log.info({ model: modelName, pid: current?.pid, engine: message.engine }, "engine ready");
      handlers.onReady(message.model, message.engine);
      return;
    }
    if (message.type === "step") {
      stats = message.stats;
      if (message.events.some((event) => event.token !== undefined)) deathsWithoutProgress = 0;
    }
    handlers.onMessage(message);
  };

  const onExit = (exit: ProcessExit): void => {
    const pid = current?.pid;
    current = undefined;
    isUp = false;
    stats = undefined;
    deathsWithoutProgress += 1;
    const decided = handlers.onExit(exit);
    const next = isStopped ? "end" : decided;
    const how = { model: modelName, pid, code: exit.code, signal: exit.signal, err: exit.refusal ?? exit.fatal, lastLines: exit.lastLines };
    // Whoever gives up on the engine, or waits for its first start, reports why; an end that was asked for needs no report.
    if (next === "restart") log.error(how, "engine process died and is started again");
    else log.debug(how, next === "end" ? "engine process ended" : "engine process died before it was ready and is started again");
    if (next !== "end") restartTimer = setTimeout(start, restartDelayMs(deathsWithoutProgress));
    whenGone?.();
  };

  return {
    get isUp() {
      return isUp;
    },
    get stats() {
      return stats;
    },
    get pid() {
      return current?.pid;
    },
    start,
    send: (message) => current?.send(message),
    stop(patienceMs) {
      isStopped = true;
      clearTimeout(restartTimer);
      const running = current;
      if (running === undefined) return Promise.resolve();
      const killTimer = setTimeout(running.kill, patienceMs);
      return new Promise((resolve) => {
        whenGone = () => {
          clearTimeout(killTimer);
          resolve();
        };
        running.send({ type: "shutdown" });
      });
    },
  };
}
