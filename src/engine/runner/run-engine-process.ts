/** The engine process: speaks the protocol with its parent, and runs the step loop on whatever engine `load` makes. */
import { asPagodaError, type PagodaError, protocolMismatch, toWireError } from "../../errors.js";
import type { SchedulerOptions } from "../../scheduler/options.js";
import { createScheduler } from "../../scheduler/scheduler.js";
import type { Executor } from "../executor/executor.js";
import { type EngineInfo, type EngineSettings, type FromEngine, type ModelInfo, protocolVersion, type ToEngine } from "../protocol.js";
import { endWithChannel, endWithParent } from "./parent-watch.js";
import { createRequestTable, type RequestTable } from "./request-table.js";
import { runSteps } from "./step-loop.js";
import { createStepReporter } from "./step-reporter.js";
import { inLanes, type TokenizeSegments } from "./tokenize-lanes.js";
import { createWorkSignal } from "./work-signal.js";

/** A model that is ready to compute. */
export interface LoadedEngine {
  readonly model: ModelInfo;
  readonly engine: EngineInfo;
  readonly schedulerOptions: SchedulerOptions;
  readonly executor: Executor;
  /** Off the event loop. */
  readonly tokenize: TokenizeSegments;
  /** Frees everything native; nothing may be running. */
  close(): Promise<void>;
}

/** Loads what the settings ask for; rejects with a coded error when that is not possible. `onProgress` takes 0 to 1. */
export type LoadEngine = (settings: EngineSettings, onProgress: (progress: number) => void) => Promise<LoadedEngine>;

/** What a broken engine ends with; sysexits.h calls it an internal software error. */
const brokenExitCode = 70;

interface RunningEngine {
  readonly loaded: LoadedEngine;
  readonly requests: RequestTable;
  readonly tokenize: LoadedEngine["tokenize"];
  notify(): void;
  /** Ends the step loop after its present step. */
  stop(): Promise<void>;
}

/** Turns this process, which must have been forked with an IPC channel, into an engine. The first argument is the parent's process id. */
export function runEngineProcess(load: LoadEngine): void {
  endWithChannel();
  endWithParent(Number(process.argv[2]));
  // Ctrl-C reaches the whole process group; the parent decides when its engines end.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => undefined);
  process.on("uncaughtException", (error) => endBroken(asPagodaError(error)));
  process.on("unhandledRejection", (error) => endBroken(asPagodaError(error)));

  let running: RunningEngine | undefined;
  process.on("message", (raw) => {
    const message = raw as ToEngine;
    if (message.type === "load") void startEngine(load, message).then((engine) => (running = engine));
    else if (message.type === "shutdown") void shutDown(running);
    else if (running !== undefined) handle(running, message);
  });
  send({ type: "hello", protocolVersion, pid: process.pid });
}

function send(message: FromEngine, then: () => void = () => undefined): void {
  // An error means that the parent is gone, and then this process ends too.
  process.send?.(message, undefined, undefined, then);
}

function endBroken(error: PagodaError): void {
  console.error(error.cause ?? error);
  send({ type: "fatal", error: toWireError(error) }, () => process.exit(brokenExitCode));
}

async function startEngine(load: LoadEngine, message: Extract<ToEngine, { type: "load" }>): Promise<RunningEngine | undefined> {
  try {
    if (message.protocolVersion !== protocolVersion) throw protocolMismatch({ own: protocolVersion, other: message.protocolVersion });
    const loaded = await load(message.settings, (progress) => send({ type: "loading", progress }));
    const engine = startSteps(loaded);
    send({ type: "ready", model: loaded.model, engine: loaded.engine });
    globalThis.gc?.(); // reading the vocabulary leaves tens of megabytes that no later collection of this quiet heap would return
    return engine;
  } catch (thrown) {
    const error = asPagodaError(thrown);
    if (error.cause !== undefined) console.error(error.cause);
    send({ type: "loadFailed", error: toWireError(error) }, () => process.exit(1));
    return undefined;
  }
}

function startSteps(loaded: LoadedEngine): RunningEngine {
  const { executor } = loaded;
  const scheduler = createScheduler(loaded.schedulerOptions);
  const requests = createRequestTable(scheduler, executor);
  const work = createWorkSignal();
  const abort = new AbortController();
  const report = createStepReporter(scheduler, requests, send);
  const ended = runSteps({ scheduler, executor, work, report }, abort.signal).catch((error: unknown) => endBroken(asPagodaError(error)));
  return {
    loaded,
    requests,
    tokenize: inLanes(loaded.tokenize),
    notify: work.notify,
    stop() {
      abort.abort();
      work.notify();
      return ended;
    },
  };
}

function handle(engine: RunningEngine, message: Exclude<ToEngine, { type: "load" | "shutdown" }>): void {
  switch (message.type) {
    case "submit": {
      const request = message.request.id;
      const refusal = engine.requests.submit(message.request, performance.now());
      send(refusal === undefined ? { type: "accepted", request } : { type: "refused", request, error: toWireError(refusal) });
      engine.notify();
      return;
    }
    case "cancel":
      engine.requests.cancel(message.request, message.index);
      engine.notify();
      return;
    case "tokenize":
      void answerTokenize(engine, message);
  }
}

async function answerTokenize(engine: RunningEngine, { id, segments, addSpecial }: Extract<ToEngine, { type: "tokenize" }>): Promise<void> {
  try {
    send({ type: "tokenized", id, tokens: await engine.tokenize(segments, addSpecial) });
  } catch (error) {
    send({ type: "tokenizeFailed", id, error: toWireError(asPagodaError(error)) });
  }
}

async function shutDown(engine: RunningEngine | undefined): Promise<void> {
  await engine?.stop();
  await engine?.loaded.close();
  process.exit(0);
}
