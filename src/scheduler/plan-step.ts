/**
 * Decides what one step computes: a token for every sequence that is past its prompt, then chunks of the prompts that have begun,
 * then new sequences while there are tokens, slots and pages for them. Reads the state, changes nothing.
 */

import { pagesFor, type SlotId } from "../kv-cache/geometry.js";
import { createKvDraft, type KvDraft } from "../kv-cache/kv-draft.js";
import { choosePlacements, type Placement, pagesNeeded, place } from "../kv-cache/placement.js";
import { numComputedTokens, type Sequence } from "./sequence.js";
import type { SchedulerState } from "./state.js";
import type { Admission, Row, SequenceId, StepPlan } from "./step-plan.js";

interface Draft {
  readonly state: SchedulerState;
  readonly kv: KvDraft;
  readonly rows: Row[];
  readonly hasRow: Set<Sequence>;
  readonly preempted: Set<Sequence>;
  readonly admitted: Admission[];
  readonly ended: SequenceId[];
  tokensLeft: number;
}

export function planStep(state: SchedulerState): StepPlan {
  const draft: Draft = {
    state,
    kv: createKvDraft(state.kv),
    rows: [],
    hasRow: new Set(),
    preempted: new Set(),
    admitted: [],
    ended: [],
    tokensLeft: state.options.maxBatchTokens,
  };
  planDepartures(draft);
  planDecodes(draft);
  planPrefills(draft);
  // Who was just put out must not see another take its pages, so a step that preempts admits nobody.
  if (draft.preempted.size === 0) planAdmissions(draft);
  const preempted = Array.from(draft.preempted, (sequence) => sequence.id);
  return { moves: draft.kv.moves, rows: draft.rows, preempted, admitted: draft.admitted, ended: draft.ended };
}

function planDepartures(draft: Draft): void {
  for (const sequence of draft.state.running) {
    if (!sequence.isCancelled) continue;
    draft.ended.push(sequence.id);
    draft.kv.release(sequence.slot as SlotId);
  }
  for (const sequence of draft.state.waiting) if (sequence.isCancelled) draft.ended.push(sequence.id);
}

function planDecodes(draft: Draft): void {
  for (const sequence of draft.state.running) {
    if (!takesPart(draft, sequence) || uncomputedTokens(draft, sequence) !== 1) continue;
    if (makeRoom(draft, sequence, 1)) addRow(draft, sequence, sequence.slot as SlotId, numComputedTokens(sequence, draft.state.kv), 1);
  }
}

function planPrefills(draft: Draft): void {
  for (const sequence of draft.state.running) {
    if (draft.tokensLeft === 0) return;
    const uncomputed = uncomputedTokens(draft, sequence);
    if (!takesPart(draft, sequence) || uncomputed < 2) continue;
    const slot = sequence.slot as SlotId;
    const start = numComputedTokens(sequence, draft.state.kv);
    if (!makeRoom(draft, sequence, 1)) continue;
    const chunk = Math.min(uncomputed, draft.tokensLeft, draft.kv.capacity(slot) - start);
    draft.kv.grow(slot, start + chunk);
    addRow(draft, sequence, slot, start, chunk);
  }
}

function planAdmissions(draft: Draft): void {
  const { state } = draft;
  let places = state.options.maxSequences - state.running.filter((sequence) => !sequence.isCancelled).length;
  if (places <= 0 || state.waiting.length === 0) return;
  const promised = promisedPages(draft);
  for (const sequence of state.waiting) {
    if (places === 0 || draft.tokensLeft === 0) return;
    if (sequence.isCancelled || waitsForItsPrompt(draft, sequence)) continue;
    // The head of the queue is not passed by: whoever came first is first served.
    if (!admit(draft, sequence, promised)) return;
    places--;
  }
}

/** Puts a waiting sequence into a slot with its first chunk; false when no slot is idle or the pages are promised to others. */
function admit(draft: Draft, sequence: Sequence, promised: number[]): boolean {
  const { kv, state } = draft;
  const newcomer = { salt: sequence.request.salt, tokens: sequence.known, reuse: state.options.sharePrefixes };
  const placement = choosePlacements(kv, newcomer).find((candidate) => hasRoom(draft, candidate, sequence, promised));
  if (placement === undefined) return false;
  place(kv, placement);
  const chunk = Math.min(sequence.known.length - placement.tokens, draft.tokensLeft);
  kv.grow(placement.slot, placement.tokens + chunk);
  const arena = kv.view(placement.slot).slot.arena.index;
  promised[arena] = (promised[arena] as number) + missingPages(draft, sequence, placement.slot);
  draft.admitted.push({ sequence: sequence.id, slot: placement.slot, cachedTokens: placement.tokens });
  addRow(draft, sequence, placement.slot, placement.tokens, chunk);
  return true;
}

function hasRoom(draft: Draft, placement: Placement, sequence: Sequence, promised: readonly number[]): boolean {
  const { index, pool } = draft.kv.view(placement.slot).slot.arena;
  const { pinnedNow, reserved } = pagesNeeded(draft.kv, placement, sequence.known.length + 1);
  const spare = pool.total - draft.kv.pinned(index) - (promised[index] as number);
  return pinnedNow + reserved + growthMargin(draft, index) <= spare;
}

/** For each arena, pages that running sequences do not hold yet but need for what they know and the token after it. */
function promisedPages(draft: Draft): number[] {
  const { state } = draft;
  const promised = state.kv.arenas.map(() => 0);
  for (const sequence of state.running) {
    if (sequence.isCancelled) continue;
    const slot = sequence.slot as SlotId;
    const arena = state.kv.slots.get(slot)?.arena.index as number;
    promised[arena] = (promised[arena] as number) + missingPages(draft, sequence, slot);
  }
  return promised;
}

function missingPages(draft: Draft, sequence: Sequence, slot: SlotId): number {
  return Math.max(0, pagesFor(sequence.known.length + 1, draft.state.options.kv.pageTokens) - draft.kv.pagesOf(slot));
}

/** Pages kept back so that those who run can each grow by one before anybody is preempted; nothing for the first in an arena, which always fits. */
function growthMargin(draft: Draft, arena: number): number {
  const total = draft.state.kv.arenas[arena]?.pool.total ?? 0;
  return Math.min(draft.kv.running(arena), Math.ceil(total / 16));
}

/** The further choices of a request start when the first has computed the prompt, to share its pages instead of computing them again. */
function waitsForItsPrompt(draft: Draft, sequence: Sequence): boolean {
  const { options, kv, sequences } = draft.state;
  const leader = sequence.request.sequences[0] as Sequence;
  if (leader === sequence || !options.sharePrefixes || !options.kv.canTrim || sequence.hasStarted || !sequences.has(leader.id)) return false;
  if (leader.isCancelled) return false;
  return leader.slot === undefined || numComputedTokens(leader, kv) < sequence.request.promptTokens - 1;
}

/** Reserves pages for `tokens` more tokens, preempting younger sequences and at last the sequence itself; false when it has lost its slot or must wait. */
function makeRoom(draft: Draft, sequence: Sequence, tokens: number): boolean {
  const slot = sequence.slot as SlotId;
  const length = numComputedTokens(sequence, draft.state.kv) + tokens;
  while (!draft.kv.grow(slot, length)) {
    const victim = youngestWithoutRow(draft, slot);
    if (victim === undefined) return false;
    draft.preempted.add(victim);
    draft.kv.release(victim.slot as SlotId);
    if (victim === sequence) return false;
  }
  return true;
}

/** The last to have come has computed least and waits least long for its return. */
function youngestWithoutRow(draft: Draft, slot: SlotId): Sequence | undefined {
  const { arena } = draft.kv.view(slot).slot;
  return draft.state.running.findLast(
    (sequence) => takesPart(draft, sequence) && !draft.hasRow.has(sequence) && draft.kv.view(sequence.slot as SlotId).slot.arena === arena,
  );
}

function takesPart(draft: Draft, sequence: Sequence): boolean {
  return !sequence.isCancelled && !draft.preempted.has(sequence);
}

function uncomputedTokens(draft: Draft, sequence: Sequence): number {
  return sequence.known.length - numComputedTokens(sequence, draft.state.kv);
}

function addRow(draft: Draft, sequence: Sequence, slot: SlotId, start: number, count: number): void {
  const isLast = start + count === sequence.known.length;
  draft.rows.push({ sequence: sequence.id, slot, start, tokens: sequence.known.copy(start, start + count), logits: isLast ? "last" : "none" });
  draft.hasRow.add(sequence);
  draft.tokensLeft -= count;
}
