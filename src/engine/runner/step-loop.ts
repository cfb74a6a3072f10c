/** The loop that everything else serves: plan → execute → commit. */
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Scheduler } from "../../scheduler/scheduler.js";
import { isIdle, type SequenceEvent, type StepPlan } from "../../scheduler/step-plan.js";
import type { Executor } from "../executor/executor.js";
import type { WorkSignal } from "./work-signal.js";

/** What came of one step. */
export interface StepReport {
  readonly plan: StepPlan;
  readonly events: readonly SequenceEvent[];
  readonly stepMs: number;
}

export interface StepLoop {
  readonly scheduler: Scheduler;
  readonly executor: Executor;
  readonly work: WorkSignal;
  /** Called once a step, whatever the number of sequences. */
  report(step: StepReport): void;
}

/** Runs steps until aborted; whoever aborts also notifies `work`. A request's own fault is part of the outcome; rejects only when the engine is broken. */
export async function runSteps({ scheduler, executor, work, report }: StepLoop, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const plan = scheduler.plan();
    if (isIdle(plan)) {
      await work.arrived();
      continue;
    }
    const startMs = performance.now();
    const outcome = await executor.execute(plan);
    const endMs = performance.now();
    report({ plan, events: scheduler.commit(plan, outcome, endMs, startMs), stepMs: endMs - startMs });
    await nextTurn(); // messages are read between any two steps, even when a step never waited for the device
  }
}
