/** The token-level scheduler: takes requests in, plans steps, books their outcomes. Pure: no I/O, no clock, no model. */
import { commitStep } from "./commit-step.js";
import type { SchedulerOptions } from "./options.js";
import { planStep } from "./plan-step.js";
import { createRequestState } from "./sequence.js";
import { createSchedulerState, type SchedulerState } from "./state.js";
import type { Refusal, ScheduledRequest, SchedulerStats, SequenceEvent, StepOutcome, StepPlan } from "./step-plan.js";

/** Plans steps and keeps the books. `plan` changes nothing; `submit`, `cancel` and `commit` do. */
export interface Scheduler {
  /** Takes a request into the queue, or says why not. */
  submit(request: ScheduledRequest, nowMs: number): Refusal | undefined;
  /** Ends a sequence at the next step boundary. An unknown id is ignored: it has already ended. */
  cancel(sequence: string): void;
  /** The next step; see `isIdle`. Each plan is given to `commit` before the next is made. */
  plan(): StepPlan;
  /** Books a plan's outcome and tells what happened to each sequence. `plannedMs`: when the plan was made; `nowMs` when not given. */
  commit(plan: StepPlan, outcome: StepOutcome, nowMs: number, plannedMs?: number): SequenceEvent[];
  stats(): SchedulerStats;
  /** The books, for tests and diagnosis. */
  readonly state: SchedulerState;
}

/** @throws RangeError when the options contradict each other: they are settled by the planner, never by a user */
export function createScheduler(options: SchedulerOptions): Scheduler {
  assertConsistent(options);
  const state = createSchedulerState(options);
  return {
    state,
    submit: (request, nowMs) => submit(state, request, nowMs),
    cancel(id) {
      const sequence = state.sequences.get(id);
      if (sequence !== undefined) sequence.isCancelled = true;
    },
    plan: () => planStep(state),
    commit: (plan, outcome, nowMs, plannedMs) => commitStep(state, plan, outcome, nowMs, plannedMs),
    stats: () => stats(state),
  };
}

function submit(state: SchedulerState, request: ScheduledRequest, nowMs: number): Refusal | undefined {
  const { contextTokens } = state.options;
  const promptTokens = request.promptTokens.length;
  if (promptTokens === 0) return { kind: "emptyPrompt" };
  const longest = Math.max(...request.sequences.map((sequence) => promptTokens + sequence.outputTokens.length));
  if (longest >= contextTokens) return { kind: "neverFits", promptTokens, contextTokens };
  const refusal = request.isResubmission === true ? undefined : overLimit(state, request);
  if (refusal !== undefined) return refusal;

  if (state.sequences.size === 0) state.drainRate.began(nowMs);
  const { sequences } = createRequestState(request, nowMs, state.nextOrder);
  state.nextOrder += sequences.length;
  for (const sequence of sequences) {
    state.sequences.set(sequence.id, sequence);
    state.waiting.add(sequence);
  }
  return undefined;
}

/** Who finds a free place does not wait and is not counted. */
function overLimit(state: SchedulerState, request: ScheduledRequest): Refusal | undefined {
  const { maxSequences, maxQueuedRequests, maxQueuedTokens } = state.options;
  const waiting = state.waiting.length - (maxSequences - state.running.length);
  if (waiting < 0) return undefined;
  const retryAfterSeconds = state.drainRate.secondsFor(waiting + 1);
  if (waiting >= maxQueuedRequests) return { kind: "queueFull", unit: "requests", waiting, limit: maxQueuedRequests, retryAfterSeconds };
  const tokens = state.waiting.tokens + request.promptTokens.length * request.sequences.length;
  if (tokens > maxQueuedTokens) return { kind: "queueFull", unit: "tokens", waiting: state.waiting.tokens, limit: maxQueuedTokens, retryAfterSeconds };
  return undefined;
}

function stats(state: SchedulerState): SchedulerStats {
  let pagesTotal = 0;
  let pagesUsed = 0;
  let pagesFree = 0;
  for (const { pool } of state.kv.arenas) {
    pagesTotal += pool.total;
    pagesUsed += pool.pinned;
    pagesFree += pool.free;
  }
  return {
    running: state.running.length,
    waiting: state.waiting.length,
    waitingTokens: state.waiting.tokens,
    pagesTotal,
    pagesUsed,
    pagesCached: pagesTotal - pagesUsed - pagesFree,
    ...state.counters,
  };
}

function assertConsistent(options: SchedulerOptions): void {
  const { maxSequences, maxBatchTokens, contextTokens, kv } = options;
  if (maxSequences < 1 || maxBatchTokens < maxSequences)
    throw new RangeError(`${maxSequences} sequences cannot each have a token in a step of ${maxBatchTokens}.`);
  const slots = kv.arenas.reduce((sum, arena) => sum + arena.slots.length, 0);
  if (slots < maxSequences) throw new RangeError(`${maxSequences} sequences need as many slots, not ${slots}.`);
  const smallest = Math.min(...kv.arenas.map((arena) => arena.pages * kv.pageTokens));
  if (contextTokens > smallest) throw new RangeError(`A context of ${contextTokens} tokens does not fit into an arena of ${smallest}.`);
}
