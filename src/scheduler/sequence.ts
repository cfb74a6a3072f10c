/** What the scheduler knows of a request and of each of its sequences. */
import type { SlotId } from "../kv-cache/geometry.js";
import type { KvCache } from "../kv-cache/kv-cache.js";
import { createTokenBuffer, type TokenBuffer } from "../kv-cache/token-buffer.js";
import type { ScheduledRequest, SequenceId } from "./step-plan.js";

export interface RequestState {
  readonly id: string;
  readonly arrivalMs: number;
  readonly promptTokens: number;
  readonly maxTokens: number;
  readonly salt: string;
  readonly ignoreEndOfGeneration: boolean;
  readonly sequences: readonly Sequence[];
}

export interface Sequence {
  readonly id: SequenceId;
  readonly request: RequestState;
  /** Place in the order of arrival; smaller came earlier. */
  readonly order: number;
  /** Prompt and output. The first `numComputedTokens` of them are in the sequence's slot. */
  readonly known: TokenBuffer;
  /** The slot in which it runs; undefined while it waits. */
  slot: SlotId | undefined;
  isCancelled: boolean;
  /** Whether it has been in a slot before. */
  hasStarted: boolean;
  /** Times in a row that the engine had no room although the books had. */
  noRoomCount: number;
}

export function createRequestState(request: ScheduledRequest, nowMs: number, firstOrder: number): RequestState {
  const sequences: Sequence[] = [];
  const state: RequestState = {
    id: request.id,
    arrivalMs: nowMs,
    promptTokens: request.promptTokens.length,
    maxTokens: request.maxTokens,
    salt: request.salt,
    ignoreEndOfGeneration: request.ignoreEndOfGeneration,
    sequences,
  };
  for (const { id, outputTokens } of request.sequences) {
    const known = createTokenBuffer(request.promptTokens);
    known.append(Int32Array.from(outputTokens));
    sequences.push({ id, request: state, order: firstOrder + sequences.length, known, slot: undefined, isCancelled: false, hasStarted: false, noRoomCount: 0 });
  }
  return state;
}

/** How many of the known tokens are in the sequence's slot; 0 while it waits. */
export function numComputedTokens(sequence: Sequence, kv: KvCache): number {
  return sequence.slot === undefined ? 0 : (kv.slots.get(sequence.slot)?.tokens.length ?? 0);
}

export function outputTokens(sequence: Sequence): number {
  return sequence.known.length - sequence.request.promptTokens;
}
