/** The records that pass between the scheduler and whoever executes its steps. */
import type { WireError } from "../errors.js";
import type { PageMove, SlotId } from "../kv-cache/geometry.js";

export type { PageMove, SlotId } from "../kv-cache/geometry.js";

/** Names one sequence: a request has one for each of its choices. */
export type SequenceId = string;

/** What one step computes. Made by `plan`, executed once, given to `commit`, then dropped. Moves happen in order, before any row. */
export interface StepPlan {
  readonly moves: readonly PageMove[];
  readonly rows: readonly Row[];
  /** Sequences that lose their slot in this step and wait again, their computed tokens kept only as far as the cache keeps them. */
  readonly preempted: readonly SequenceId[];
  readonly admitted: readonly Admission[];
  /** Cancelled sequences that leave in this step. */
  readonly ended: readonly SequenceId[];
}

/** Whether a plan asks for nothing: no work is there, and none will be before something is submitted or cancelled. */
export function isIdle(plan: StepPlan): boolean {
  return plan.rows.length === 0 && plan.ended.length === 0;
}

/** Some tokens of one sequence from its first uncomputed position on: one token is a decode, several are a prefill chunk. */
export interface Row {
  readonly sequence: SequenceId;
  readonly slot: SlotId;
  /** Position of the first token. */
  readonly start: number;
  readonly tokens: Int32Array;
  /** Which rows of logits the step needs: with `last`, the executor samples one token after the row's last one. */
  readonly logits: "none" | "last";
}

/** A waiting sequence enters a slot whose first `cachedTokens` tokens are already computed. */
export interface Admission {
  readonly sequence: SequenceId;
  readonly slot: SlotId;
  readonly cachedTokens: number;
}

/** Log probability of one token and of the likeliest alternatives at its position: natural logarithm, from the raw logits. */
export interface TokenLogprob {
  readonly logprob: number;
  /** [token id, log probability], likeliest first. */
  readonly top: readonly (readonly [number, number])[];
}

/** What came of one row. */
export type RowResult =
  /** The row's tokens are in the cache. */
  | { readonly kind: "computed" }
  | {
      readonly kind: "sampled";
      readonly token: number;
      /** The model says that its answer ends with this token. */
      readonly isEndOfGeneration: boolean;
      readonly logprob?: TokenLogprob;
    }
  /** The cache had no room; nothing of the row was computed. What its slot holds is unknown, too. */
  | { readonly kind: "noRoom" }
  /** The row's own fault. What its slot holds is unknown from then on. */
  | { readonly kind: "failed"; readonly error: WireError };

export interface StepOutcome {
  /** One result for each row of the plan, in the order of the rows. */
  readonly results: readonly RowResult[];
  /** Slots that a failed move left with something else than the plan says. */
  readonly brokenSlots?: readonly SlotId[];
}

/** What a client asks for, as the scheduler sees it. */
export interface ScheduledRequest {
  readonly id: string;
  readonly promptTokens: Int32Array;
  readonly sequences: readonly ScheduledSequence[];
  /** Output tokens of one sequence at most, those it already has included. */
  readonly maxTokens: number;
  /** Requests share computed prefixes only with requests of the same salt. */
  readonly salt: string;
  /** Whether an end-of-generation token ends the sequence. */
  readonly ignoreEndOfGeneration: boolean;
  /** Was accepted before, by an engine that is gone: the queue's limits do not apply again. */
  readonly isResubmission?: boolean;
}

export interface ScheduledSequence {
  readonly id: SequenceId;
  /** Tokens that were already generated, for a request that continues after an engine was lost. */
  readonly outputTokens: readonly number[];
}

/** `stop`: the model ended its answer. `length`: the token limit or the context is reached. */
export type FinishReason = "stop" | "length" | "cancelled" | "error";

/** News of one sequence in one step. */
export interface SequenceEvent {
  readonly sequence: SequenceId;
  readonly token?: number;
  readonly logprob?: TokenLogprob;
  readonly finish?: FinishReason;
  readonly error?: WireError;
  /** Sent once, when the sequence enters its first slot. */
  readonly started?: { readonly queueMs: number; readonly cachedTokens: number };
}

export interface SchedulerStats {
  /** Sequences that hold a slot. */
  readonly running: number;
  readonly waiting: number;
  readonly waitingTokens: number;
  readonly pagesTotal: number;
  /** Pages that running sequences hold. */
  readonly pagesUsed: number;
  /** Pages that only finished sequences hold, for reuse. */
  readonly pagesCached: number;
  readonly preemptions: number;
  /** Prompt tokens looked up in the prefix tree, and those of them found there. */
  readonly prefixQueryTokens: number;
  readonly prefixHitTokens: number;
}

/** Why a request was not taken. */
export type Refusal =
  | { readonly kind: "queueFull"; readonly unit: "requests" | "tokens"; readonly waiting: number; readonly limit: number; readonly retryAfterSeconds: number }
  | { readonly kind: "emptyPrompt" }
  | { readonly kind: "neverFits"; readonly promptTokens: number; readonly contextTokens: number };
