/** The engine client for engines that are child processes of this one. */
import { engineCrashed, engineUnavailable, type PagodaError, shuttingDown } from "../../errors.js";
import type { EngineInfo, EngineSettings, EngineStats, ModelInfo } from "../protocol.js";
import { createDispatcher } from "./dispatcher.js";
import type { EngineClient, EngineState } from "./engine-client.js";
import { defaultEntry, type EngineLog, type ProcessExit } from "./engine-process.js";
import { type AfterDeath, createReplica, type Replica } from "./replica.js";
import { createGenerationWork, createTokenizeWork, type GenerationWork, wireRequestId } from "./work.js";

export interface EngineClientOptions {
  /** The model's public name, for logs and errors. */
  readonly modelName: string;
  readonly settings: EngineSettings;
  /** Engine processes for this model, at least 1. */
  readonly replicas: number;
  /** How long a new request waits while no engine is up, in milliseconds. */
  readonly engineWaitMs: number;
  readonly log: EngineLog;
  /** Called with the figures of each step of each replica. */
  readonly onStats?: (replica: number, stats: EngineStats) => void;
  /** The module that the engine processes run; the real engine when absent. */
  readonly entry?: string;
}

/** An engine client whose engines are processes of this machine. */
export interface LocalEngineClient extends EngineClient {
  /** Process ids of the engines that exist now, started or still starting. */
  pids(): readonly number[];
}

interface Ready {
  readonly model: ModelInfo;
  readonly engine: EngineInfo;
}

/** Engines that die this often before the first of them was ready will not do better. */
const deathsBeforeGivingUp = 3;

/** How long an engine may take to end by itself before it is killed. */
const shutdownPatienceMs = 2_000;

/** Starts the engines at once; `ready()` tells when the first can answer. */
export function createEngineClient(options: EngineClientOptions): LocalEngineClient {
  const { modelName, engineWaitMs, log } = options;
  const exitListeners: Parameters<EngineClient["onExit"]>[0][] = [];
  let first: Ready | undefined;
  let failure: PagodaError | undefined;
  let isClosing = false;
  let isStopping = false;
  let earlyDeaths = 0;
  let restarts = 0;
  let closed: Promise<void> | undefined;

  let settleReady: { resolve: (ready: Ready) => void; reject: (error: PagodaError) => void } | undefined;
  const whenReady = new Promise<Ready>((resolve, reject) => {
    settleReady = { resolve, reject };
  });
  whenReady.catch(() => undefined); // told to those who call ready(); a client that nobody asks must not end the process

  const replicas: Replica[] = Array.from({ length: options.replicas }, (_, index) => {
    const replica: Replica = createReplica(
      { modelName, log, entry: options.entry ?? defaultEntry(), settings: () => settingsOnceKnown(options, first?.engine) },
      {
        onReady(model, engine) {
          if (first === undefined) {
            first = { model, engine };
            settleReady?.resolve(first);
          }
          dispatcher.engineUp();
          // One after the other, so that each sees what the others have left of the memory.
          if (index === lastStarted) startNext();
        },
        onMessage(message) {
          dispatcher.received(replica, message);
          if (message.type === "step") options.onStats?.(index, message.stats);
        },
        onExit: (exit) => engineExited(replica, exit),
      },
    );
    return replica;
  });
  const dispatcher = createDispatcher({ modelName, engineWaitMs, engines: replicas });

  let lastStarted = -1;
  const startNext = (): void => {
    lastStarted += 1;
    replicas[lastStarted]?.start();
  };

  const giveUp = (error: PagodaError): void => {
    failure = error;
    settleReady?.reject(error);
    dispatcher.failAll(engineUnavailable({ model: modelName, waitedMs: 0 }, { cause: error, retryAfterSeconds: 60 }));
    void Promise.all(replicas.map((replica) => replica.stop(shutdownPatienceMs)));
  };

  /** Books a death and says what follows. */
  const engineExited = (replica: Replica, exit: ProcessExit): AfterDeath => {
    if (first === undefined && failure === undefined && !isClosing) {
      earlyDeaths += 1;
      if (exit.refusal !== undefined) giveUp(exit.refusal);
      else if (earlyDeaths >= deathsBeforeGivingUp) giveUp(exit.fatal ?? crashError(modelName, exit));
    }
    const willRestart = failure === undefined && !isStopping;
    if (willRestart) restarts += 1;
    for (const listener of exitListeners) listener({ code: exit.code, signal: exit.signal, willRestart });
    dispatcher.engineLost(replica);
    if (!willRestart) return "end";
    return first === undefined ? "firstStart" : "restart";
  };

  const cancel = (work: GenerationWork, index: number | undefined): void => {
    const cancelled = work.cancel(index);
    const place = dispatcher.placeOf(work);
    if (place === undefined) {
      work.settle();
      if (work.hasEnded) dispatcher.forget(work);
      return;
    }
    for (const choice of cancelled) place.engine.send({ type: "cancel", request: wireRequestId(work.request, place.wireId), index: choice });
  };

  const refuseNewWork = (): void => {
    if (isClosing) throw shuttingDown({}, { retryAfterSeconds: 5 });
    if (failure !== undefined) throw engineUnavailable({ model: modelName, waitedMs: 0 }, { cause: failure, retryAfterSeconds: 60 });
  };

  /** Runs `abandon` if the signal is aborted before `promise` is settled. */
  const abortable = async <Value>(promise: Promise<Value>, signal: AbortSignal | undefined, abandon: (reason: unknown) => void): Promise<Value> => {
    const onAbort = (): void => abandon(signal?.reason);
    signal?.addEventListener("abort", onAbort, { once: true });
    return promise.finally(() => signal?.removeEventListener("abort", onAbort));
  };

  const shutDown = async (graceMs: number): Promise<void> => {
    isClosing = true;
    dispatcher.failUntaken(shuttingDown({}, { retryAfterSeconds: 5 }));
    const grace = timer(graceMs);
    await Promise.race([dispatcher.drained(), grace.elapsed]);
    grace.stop();
    isStopping = true;
    dispatcher.failAll(shuttingDown({}, { retryAfterSeconds: 5 }));
    await Promise.all(replicas.map((replica) => replica.stop(shutdownPatienceMs)));
    settleReady?.reject(shuttingDown({}));
  };

  startNext();

  return {
    get state(): EngineState {
      if (isClosing) return "stopped";
      if (failure !== undefined) return "failed";
      if (replicas.some((replica) => replica.isUp)) return "ready";
      return first === undefined ? "starting" : "restarting";
    },
    get restarts() {
      return restarts;
    },
    ready: () => whenReady,
    async submit(request, signal) {
      refuseNewWork();
      signal?.throwIfAborted();
      const work = createGenerationWork(request, cancel);
      dispatcher.add(work);
      const generation = await abortable(work.generation, signal, (reason) => {
        work.abandon(reason);
        cancel(work, undefined);
      });
      if (signal?.aborted) generation.cancel();
      else signal?.addEventListener("abort", () => generation.cancel(), { once: true });
      return generation;
    },
    async tokenize(segments, { addSpecial }, signal) {
      refuseNewWork();
      signal?.throwIfAborted();
      const work = createTokenizeWork(segments, addSpecial);
      dispatcher.add(work);
      return abortable(work.tokens, signal, (reason) => {
        work.abandon(reason);
        if (dispatcher.placeOf(work) === undefined) dispatcher.forget(work);
      });
    },
    stats: () => replicas.flatMap(({ stats }) => (stats === undefined ? [] : [stats])),
    pids: () => replicas.flatMap(({ pid }) => (pid === undefined ? [] : [pid])),
    onExit(listener) {
      exitListeners.push(listener);
    },
    close(graceMs) {
      closed ??= shutDown(graceMs);
      return closed;
    },
  };
}

/**
 * What an engine is told to load. Once the first engine has settled what was left to it, all later ones are told the same,
 * so that a request that was taken fits wherever it is continued.
 */
function settingsOnceKnown({ settings, replicas }: EngineClientOptions, engine: EngineInfo | undefined): EngineSettings {
  const shared = { ...settings, machineShare: (settings.machineShare ?? 1) / replicas };
  if (engine === undefined) return shared;
  const { threads, kvLayout, kvTokens, maxSequences } = engine;
  return { ...shared, threads, kvLayout, kvTokens, maxSequences };
}

/** The libraries' lines about their work, as the engine process marks them: they are in the log, and here would hide what was said at the end. */
const linesInPassing = /^(info|debug): /;

function crashError(model: string, { code, signal, lastLines }: ProcessExit): PagodaError {
  return engineCrashed({
    model,
    exit: signal === null ? `exit code ${code}` : `signal ${signal}`,
    lastLines: lastLines.filter((line) => !linesInPassing.test(line)),
  });
}

function timer(ms: number): { readonly elapsed: Promise<void>; stop(): void } {
  let stop = (): void => undefined;
  const elapsed = new Promise<void>((resolve) => {
    const handle = setTimeout(resolve, ms);
    stop = () => {
      clearTimeout(handle);
      resolve();
    };
  });
  return { elapsed, stop };
}
