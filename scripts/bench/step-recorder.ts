/** Watches the engine's own step loop from outside: when each step began and ended, what it computed, and how long the engine was inside llama.cpp. */
import type { Executor } from "../../src/engine/executor/executor.js";
import type { Scheduler } from "../../src/scheduler/scheduler.js";
import { isIdle, type StepPlan } from "../../src/scheduler/step-plan.js";

/** One step. It lasts from the beginning of its plan to the beginning of the next, so that booking, the message and the event loop's turn belong to it. */
export interface RecordedStep {
  readonly rows: number;
  readonly tokens: number;
  readonly beganMs: number;
  endedMs: number;
  /** Inside `llama_decode`, waiting for it included. */
  decodeMs: number;
  samplingMs: number;
}

/** Milliseconds that the engine has spent inside llama.cpp since it started. */
export interface NativeTime {
  readonly decodeMs: number;
  readonly samplingMs: number;
}

export interface StepRecorder {
  readonly scheduler: Scheduler;
  readonly executor: Executor;
  /** Resolves when the loop next finds nothing to do. */
  idle(): Promise<void>;
  /** Gives the finished steps since the last call and forgets them. */
  take(): RecordedStep[];
}

/** The same scheduler and executor, with every step noted. `nativeTime` is asked before and after each execution. */
export function recordSteps(scheduler: Scheduler, executor: Executor, nativeTime: () => NativeTime): StepRecorder {
  let finished: RecordedStep[] = [];
  let open: RecordedStep | undefined;
  let whenIdle: (() => void)[] = [];

  function plan(): StepPlan {
    const beganMs = performance.now();
    if (open !== undefined) finished.push({ ...open, endedMs: beganMs });
    const made = scheduler.plan();
    const tokens = made.rows.reduce((sum, row) => sum + row.tokens.length, 0);
    open = isIdle(made) ? undefined : { rows: made.rows.length, tokens, beganMs, endedMs: beganMs, decodeMs: 0, samplingMs: 0 };
    if (open === undefined) {
      for (const resolve of whenIdle) resolve();
      whenIdle = [];
    }
    return made;
  }

  return {
    scheduler: { ...scheduler, plan },
    executor: {
      begin: (start) => executor.begin(start),
      end: (sequence) => executor.end(sequence),
      async execute(made) {
        const before = nativeTime();
        const outcome = await executor.execute(made);
        const after = nativeTime();
        if (open !== undefined) {
          open.decodeMs = after.decodeMs - before.decodeMs;
          open.samplingMs = after.samplingMs - before.samplingMs;
        }
        return outcome;
      },
    },
    idle: () => new Promise((resolve) => whenIdle.push(resolve)),
    take() {
      const steps = finished;
      finished = [];
      return steps;
    },
  };
}
