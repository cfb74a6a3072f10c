/** Runs a schedule of arrivals and cancels through the real scheduler and the simulated engine, and checks every invariant after every step. */
import { expect } from "vitest";
import { createSimulatedExecutor, type SimulatedModel, type SimulatedOptions } from "../../src/engine/simulated/simulated-executor.js";
import { findBreaches } from "../../src/kv-cache/invariants.js";
import type { SchedulerOptions } from "../../src/scheduler/options.js";
import { createScheduler, type Scheduler } from "../../src/scheduler/scheduler.js";
import { numComputedTokens } from "../../src/scheduler/sequence.js";
import { type FinishReason, isIdle, type Refusal, type ScheduledRequest, type StepOutcome, type StepPlan } from "../../src/scheduler/step-plan.js";

export interface Arrival {
  readonly step: number;
  readonly request: ScheduledRequest;
  /** Sequences to cancel, by their number in the request, so many steps after the arrival; `during`: while a step is executed. */
  readonly cancel?: { readonly choice: number; readonly afterSteps: number; readonly during: boolean };
}

export interface Received {
  readonly tokens: number[];
  finish: FinishReason | undefined;
  started: number;
  cachedTokens: number;
}

export interface World {
  readonly scheduler: Scheduler;
  readonly received: Map<string, Received>;
  readonly refused: Map<string, Refusal>;
  readonly steps: number;
  readonly usedCells: number;
  /** What kinds of things happened, so that a test can tell that it tested something. */
  readonly seen: { preemptions: number; shares: number; copies: number; takeOvers: number; trims: number };
}

export const simulatedModel: SimulatedModel = { vocabularySize: 5, endOneIn: 23 };

/** What goes wrong in the engine; by default nothing. */
export type Faults = Pick<SimulatedOptions, "failsRow" | "failsMove">;

/** @throws an assertion when an invariant breaks or the schedule does not come to an end within `stepLimit` steps */
export async function simulate(options: SchedulerOptions, arrivals: readonly Arrival[], stepLimit: number, faults: Faults = {}): Promise<World> {
  const scheduler = createScheduler(options);
  const executor = createSimulatedExecutor({ kv: options.kv, model: simulatedModel, ...faults });
  const received = new Map<string, Received>();
  const refused = new Map<string, Refusal>();
  const seen = { preemptions: 0, shares: 0, copies: 0, takeOvers: 0, trims: 0 };
  const pending = [...arrivals].sort((a, b) => a.step - b.step);
  const cancels = new Map<number, { id: string; during: boolean }[]>();
  let step = 0;

  for (; ; step++) {
    if (step > stepLimit) throw new Error(`Not at an end after ${stepLimit} steps: ${JSON.stringify(scheduler.stats())}`);
    while (pending[0] !== undefined && pending[0].step <= step) {
      const { request, cancel } = pending.shift() as Arrival;
      const refusal = scheduler.submit(request, step);
      if (refusal !== undefined) {
        refused.set(request.id, refusal);
        continue;
      }
      for (const { id } of request.sequences) received.set(id, { tokens: [], finish: undefined, started: 0, cachedTokens: 0 });
      const cancelled = cancel && request.sequences[cancel.choice];
      if (cancelled) cancels.set(step + cancel.afterSteps, [...(cancels.get(step + cancel.afterSteps) ?? []), { id: cancelled.id, during: cancel.during }]);
    }
    for (const { id, during } of cancels.get(step) ?? []) if (!during) scheduler.cancel(id);

    const plan = scheduler.plan();
    checkPlan(scheduler, plan, options);
    if (isIdle(plan)) {
      expect(scheduler.stats(), "nothing to compute although somebody is here").toMatchObject({ running: 0, waiting: 0 });
      if (pending.length === 0) break;
      continue;
    }
    for (const { id, during } of cancels.get(step) ?? []) if (during) scheduler.cancel(id);
    countMoves(seen, plan);
    const outcome: StepOutcome = await executor.execute(plan);
    for (const result of outcome.results) {
      const isExpected = result.kind === "computed" || result.kind === "sampled" || (result.kind === "failed" && Object.keys(faults).length > 0);
      demand(isExpected, () => `a row came back as ${result.kind}`);
    }
    for (const event of scheduler.commit(plan, outcome, step)) {
      const entry = received.get(event.sequence) as Received;
      demand(entry.finish === undefined, () => `news of ${event.sequence} after its end`);
      if (event.started !== undefined) {
        entry.started++;
        entry.cachedTokens = event.started.cachedTokens;
      }
      if (event.token !== undefined) entry.tokens.push(event.token);
      entry.finish = event.finish;
    }
    checkBooks(scheduler, executor.contentOf);
  }
  return { scheduler, received, refused, steps: step, usedCells: executor.usedCells, seen };
}

// The checks run after every step of thousands of schedules, so they compare by hand and use `expect` only to report.

function checkPlan(scheduler: Scheduler, plan: StepPlan, options: SchedulerOptions): void {
  if (JSON.stringify(scheduler.plan()) !== JSON.stringify(plan)) expect(scheduler.plan(), "planning changed something").toEqual(plan);
  const { state } = scheduler;
  const total = plan.rows.reduce((sum, row) => sum + row.tokens.length, 0);
  const rows = new Set(plan.rows.map((row) => row.sequence));
  const slots = new Set(plan.rows.map((row) => row.slot));
  const preempted = new Set(plan.preempted);
  const running = state.running.length - plan.preempted.length - plan.ended.length + plan.admitted.length;
  demand(total <= options.maxBatchTokens, () => `${total} tokens in a step of ${options.maxBatchTokens}`);
  demand(rows.size === plan.rows.length && slots.size === plan.rows.length, () => "a sequence or a slot has two rows");
  demand(running <= options.maxSequences, () => `${running} sequences run`);
  demand(preempted.size === 0 || plan.admitted.length === 0, () => "a step that preempts admits");
  for (const sequence of state.running) {
    const isDecoding = sequence.known.length - numComputedTokens(sequence, state.kv) === 1;
    const mustHaveRow = isDecoding && !sequence.isCancelled && !preempted.has(sequence.id);
    demand(!mustHaveRow || rows.has(sequence.id), () => `${sequence.id} has no token in this step`);
  }
}

function checkBooks(scheduler: Scheduler, contentOf: (slot: number) => number[]): void {
  const { state } = scheduler;
  const breaches = findBreaches(state.kv);
  if (breaches.length > 0) expect(breaches).toEqual([]);
  const held = new Set<number>();
  for (const sequence of state.running) {
    const slot = sequence.slot as number;
    demand(!held.has(slot), () => `two sequences run in slot ${slot}`);
    held.add(slot);
    demand(numComputedTokens(sequence, state.kv) < sequence.known.length, () => `${sequence.id} runs with nothing to compute`);
  }
  for (const slot of state.kv.slots.values()) {
    demand(slot.isRunning === held.has(slot.id), () => `slot ${slot.id} runs for nobody, or rests under a sequence`);
    if (state.kv.distrusted.has(slot.id)) continue;
    const content = contentOf(slot.id);
    const isSame = content.length === slot.tokens.length && content.every((token, position) => token === slot.tokens.at(position));
    demand(isSame, () => `slot ${slot.id} holds [${content}], the books say [${slot.tokens.view(0, slot.tokens.length)}]`);
  }
}

function demand(holds: boolean, breach: () => string): void {
  if (!holds) throw new Error(breach());
}

function countMoves(seen: World["seen"], plan: StepPlan): void {
  seen.preemptions += plan.preempted.length;
  for (const move of plan.moves) {
    if (move.kind === "share") seen.shares++;
    else if (move.kind === "copy") seen.copies++;
    else seen.trims++;
  }
  const transfers = plan.moves.filter((move) => move.kind !== "trim").length;
  seen.takeOvers += plan.admitted.filter((admission) => admission.cachedTokens > 0).length - transfers;
}
