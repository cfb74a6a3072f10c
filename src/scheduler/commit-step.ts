/** Books what a step did: sequences advance, end, lose their slots or get one, and every change that a client must hear of becomes an event. */
import type { WireError } from "../errors.js";
import { kvExhausted, toWireError } from "../errors.js";
import type { SlotId } from "../kv-cache/geometry.js";
import { outputTokens, type Sequence } from "./sequence.js";
import type { SchedulerState } from "./state.js";
import type { FinishReason, Row, RowResult, SequenceEvent, SequenceId, StepOutcome, StepPlan, TokenLogprob } from "./step-plan.js";

/** How often in a row the engine may find no room that the books promise before the request is given up. */
const noRoomLimit = 3;

type MutableEvent = { -readonly [Key in keyof SequenceEvent]: SequenceEvent[Key] };
type Events = Map<SequenceId, MutableEvent>;

/** @param plannedMs when the plan was made: a sequence that it admits has waited until then */
export function commitStep(state: SchedulerState, plan: StepPlan, outcome: StepOutcome, nowMs: number, plannedMs = nowMs): SequenceEvent[] {
  const events: Events = new Map();
  for (const id of plan.ended) withSequence(state, id, (sequence) => end(state, events, sequence, "cancelled", nowMs));
  for (const id of plan.preempted) withSequence(state, id, (sequence) => returnToQueue(state, sequence));
  for (const move of plan.moves) state.kv.apply(move);
  for (const slot of outcome.brokenSlots ?? []) state.kv.distrust(slot);
  bookAdmissions(state, plan, events, plannedMs);
  plan.rows.forEach((row, index) => {
    const result = outcome.results[index];
    if (result === undefined) throw new RangeError(`The outcome has ${outcome.results.length} results for ${plan.rows.length} rows.`);
    withSequence(state, row.sequence, (sequence) => bookRow(state, events, sequence, row, result, nowMs));
  });
  return Array.from(events.values());
}

function withSequence(state: SchedulerState, id: SequenceId, action: (sequence: Sequence) => void): void {
  const sequence = state.sequences.get(id);
  if (sequence !== undefined) action(sequence);
}

function eventOf(events: Events, sequence: Sequence): MutableEvent {
  let event = events.get(sequence.id);
  if (event === undefined) {
    event = { sequence: sequence.id };
    events.set(sequence.id, event);
  }
  return event;
}

function bookAdmissions(state: SchedulerState, plan: StepPlan, events: Events, plannedMs: number): void {
  for (const { sequence: id, slot, cachedTokens } of plan.admitted) {
    withSequence(state, id, (sequence) => {
      state.waiting.remove(sequence);
      state.kv.acquire(slot, sequence.request.salt);
      sequence.slot = slot;
      insertByOrder(state.running, sequence);
      if (sequence.hasStarted) return;
      sequence.hasStarted = true;
      state.counters.prefixQueryTokens += sequence.known.length;
      state.counters.prefixHitTokens += cachedTokens;
      eventOf(events, sequence).started = { queueMs: Math.max(0, plannedMs - sequence.request.arrivalMs), cachedTokens };
    });
  }
}

function bookRow(state: SchedulerState, events: Events, sequence: Sequence, row: Row, result: RowResult, nowMs: number): void {
  if (result.kind === "failed" || result.kind === "noRoom") {
    state.kv.distrust(row.slot);
    if (result.kind === "noRoom") return bookNoRoom(state, events, sequence, nowMs);
    return end(state, events, sequence, "error", nowMs, result.error);
  }
  if (!state.kv.append(row.slot, row.tokens)) throw new RangeError(`The books have no page for a row of ${row.tokens.length} tokens that was computed.`);
  sequence.noRoomCount = 0;
  if (sequence.isCancelled) return end(state, events, sequence, "cancelled", nowMs);
  if (result.kind === "sampled") bookToken(state, events, sequence, result, nowMs);
}

function bookToken(
  state: SchedulerState,
  events: Events,
  sequence: Sequence,
  result: { readonly token: number; readonly isEndOfGeneration: boolean; readonly logprob?: TokenLogprob },
  nowMs: number,
): void {
  const { request } = sequence;
  if (outputTokens(sequence) >= request.maxTokens) return end(state, events, sequence, "length", nowMs);
  sequence.known.push(result.token);
  const event = eventOf(events, sequence);
  event.token = result.token;
  if (result.logprob !== undefined) event.logprob = result.logprob;
  if (result.isEndOfGeneration && !request.ignoreEndOfGeneration) return end(state, events, sequence, "stop", nowMs);
  if (outputTokens(sequence) >= request.maxTokens || sequence.known.length >= state.options.contextTokens) end(state, events, sequence, "length", nowMs);
}

/** The books promised room that the engine did not have: the sequence steps back, and only a repetition is an error. */
function bookNoRoom(state: SchedulerState, events: Events, sequence: Sequence, nowMs: number): void {
  sequence.noRoomCount++;
  if (sequence.isCancelled) return end(state, events, sequence, "cancelled", nowMs);
  if (sequence.noRoomCount >= noRoomLimit) return end(state, events, sequence, "error", nowMs, toWireError(kvExhausted({})));
  returnToQueue(state, sequence);
}

function returnToQueue(state: SchedulerState, sequence: Sequence): void {
  leaveSlot(state, sequence);
  state.counters.preemptions++;
  state.waiting.add(sequence);
}

function end(state: SchedulerState, events: Events, sequence: Sequence, finish: FinishReason, nowMs: number, error?: WireError): void {
  if (sequence.slot === undefined) state.waiting.remove(sequence);
  else leaveSlot(state, sequence);
  state.sequences.delete(sequence.id);
  if (sequence.hasStarted && finish !== "cancelled") state.drainRate.finished(nowMs);
  const event = eventOf(events, sequence);
  event.finish = finish;
  if (error !== undefined) event.error = error;
}

function leaveSlot(state: SchedulerState, sequence: Sequence): void {
  state.kv.release(sequence.slot as SlotId);
  sequence.slot = undefined;
  state.running.splice(state.running.indexOf(sequence), 1);
}

function insertByOrder(running: Sequence[], sequence: Sequence): void {
  const at = running.findLastIndex((other) => other.order < sequence.order) + 1;
  running.splice(at, 0, sequence);
}
