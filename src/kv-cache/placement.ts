/** Chooses the slot in which a sequence starts, so that as few as possible of its tokens are computed again and as little as possible is lost. */
import { pagesFor, type SlotId } from "./geometry.js";
import type { DraftSlot, KvDraft } from "./kv-draft.js";
import type { TokenBuffer } from "./token-buffer.js";

export type Placement =
  /** Start in an idle slot that holds the first `tokens` tokens already (0: nothing is reused). */
  | { readonly kind: "takeOver"; readonly slot: SlotId; readonly tokens: number }
  /** Start in an idle slot with the first `tokens` tokens of another slot: shared inside an arena, copied between arenas. */
  | { readonly kind: "share" | "copy"; readonly slot: SlotId; readonly from: SlotId; readonly tokens: number };

export interface Newcomer {
  readonly salt: string;
  /** Everything the sequence knows. */
  readonly tokens: TokenBuffer;
  /** Whether tokens that others computed may be used. */
  readonly reuse: boolean;
}

/** Fewer pages than this are sooner computed than copied, and are not worth another slot's content. */
const worthwhilePages = 2;

interface Candidate {
  readonly draft: DraftSlot;
  /** Tokens that the slot and the newcomer have in common. */
  readonly common: number;
}

/** The starts that the idle slots allow, best first; none when every slot runs. Whether there are pages for one is another question: see `pagesNeeded`. */
export function choosePlacements(draft: KvDraft, newcomer: Newcomer): Placement[] {
  const { pageTokens } = draft.cache.geometry;
  const vacant = firstEmptyOrOldest(draft.idle());
  if (vacant === undefined) return [];
  const candidates = matchingSlots(draft, newcomer);
  const ownBest = best(candidates.filter(({ draft: slot }) => !slot.isRunning));
  const transfer = chooseTransfer(draft, candidates, ownBest);
  const isWorthItsLoss = ownBest !== undefined && (losesLittle(ownBest, pageTokens) || ownBest.common >= worthwhilePages * pageTokens);
  const own = ownBest !== undefined && (isWorthItsLoss || ownBest.draft === vacant) ? takeOver(draft, ownBest) : undefined;
  // The last one needs the fewest pages beside its own, so that who is alone always finds room.
  const last: Placement = { kind: "takeOver", slot: vacant.slot.id, tokens: 0 };
  return [transfer, own, last].filter((placement) => placement !== undefined);
}

/** A start with another slot's tokens, when that is better than to take over the slot that matches best. */
function chooseTransfer(draft: KvDraft, candidates: readonly Candidate[], ownBest: Candidate | undefined): Placement | undefined {
  const { canTrim, pageTokens } = draft.cache.geometry;
  const source = best(candidates);
  if (source === undefined || !canTrim) return undefined;
  if (ownBest !== undefined && ownBest.common === source.common && losesLittle(ownBest, pageTokens)) return undefined;
  const { arena, id: from } = source.draft.slot;
  const beside = arena.slots.length === 1 ? undefined : firstEmptyOrOldest(draft.idle(), (slot) => slot.slot.arena === arena && slot !== source.draft);
  if (beside !== undefined) return { kind: "share", slot: beside.slot.id, from, tokens: source.common };

  const elsewhere = firstEmptyOrOldest(draft.idle(), (slot) => slot.slot.arena !== arena);
  const saved = source.common - (source.draft.isRunning ? (ownBest?.common ?? 0) : 0);
  // A copy away from an idle slot only saves what that slot holds beyond the match, so it must not cost another slot its content.
  const isWorthIt = saved >= worthwhilePages * pageTokens && (source.draft.isRunning || elsewhere?.tokens === 0);
  return elsewhere !== undefined && isWorthIt ? { kind: "copy", slot: elsewhere.slot.id, from, tokens: source.common } : undefined;
}

/**
 * Pages that a placement asks of the slot's arena: `pinnedNow` exist and would no longer be evictable,
 * `reserved` are to be added until `tokens` tokens are computed.
 */
export function pagesNeeded(draft: KvDraft, placement: Placement, tokens: number): { pinnedNow: number; reserved: number } {
  const { pageTokens } = draft.cache.geometry;
  if (placement.kind === "copy") return { pinnedNow: 0, reserved: pagesFor(tokens, pageTokens) };
  const source = draft.view(placement.kind === "share" ? placement.from : placement.slot);
  const touched = pagesFor(placement.tokens, pageTokens);
  const kept = placement.kind === "share" ? Math.floor(placement.tokens / pageTokens) : touched;
  const { index } = source.slot.arena;
  const pinnedNow = source.pages.slice(0, touched).filter((page) => !draft.isPinned(index, page)).length;
  return { pinnedNow, reserved: pagesFor(tokens, pageTokens) - kept };
}

export function place(draft: KvDraft, placement: Placement): void {
  if (placement.kind === "takeOver") draft.takeOver(placement.slot, placement.tokens);
  else if (placement.kind === "share") draft.share(placement.from, placement.slot, placement.tokens);
  else draft.copy(placement.from, placement.slot, placement.tokens);
}

function matchingSlots(draft: KvDraft, newcomer: Newcomer): Candidate[] {
  if (!newcomer.reuse) return [];
  const { canTrim } = draft.cache.geometry;
  // The last token is always computed, since its logits choose the next one.
  const limit = newcomer.tokens.length - 1;
  const candidates: Candidate[] = [];
  // Who holds less than an idle slot does is neither the best to take over nor the best to share with.
  const isEnough = (id: SlotId) => canTrim && !draft.view(id).isRunning && draft.view(id).tokens === draft.view(id).slot.tokens.length;
  for (const [id, common] of draft.cache.match(newcomer.salt, newcomer.tokens, limit, isEnough)) {
    const slot = draft.view(id);
    const usable = Math.min(common, slot.tokens);
    // Tokens that this very plan gives a slot are not computed yet.
    const isComputed = slot.isRunning === slot.slot.isRunning;
    if (usable > 0 && isComputed && (canTrim || usable === slot.slot.tokens.length)) candidates.push({ draft: slot, common: usable });
  }
  return candidates;
}

/** The first empty one of the slots, which come in the order of their last use, or else the first. */
function firstEmptyOrOldest(slots: Iterable<DraftSlot>, isWanted: (slot: DraftSlot) => boolean = () => true): DraftSlot | undefined {
  let oldest: DraftSlot | undefined;
  for (const slot of slots) {
    if (!isWanted(slot)) continue;
    if (slot.tokens === 0) return slot;
    oldest ??= slot;
  }
  return oldest;
}

/** Longest match; of equals the one with the least beyond it, which loses least. */
function best(candidates: readonly Candidate[]): Candidate | undefined {
  let winner: Candidate | undefined;
  for (const candidate of candidates) {
    const gain = winner === undefined ? 1 : candidate.common - winner.common || winner.draft.tokens - candidate.draft.tokens;
    if (gain > 0) winner = candidate;
  }
  return winner;
}

function losesLittle(candidate: Candidate, pageTokens: number): boolean {
  return candidate.draft.tokens - candidate.common < pageTokens;
}

/** Two slots must not go on differently inside one page, so what ends inside a shared page is cut to the page's beginning. */
function takeOver(draft: KvDraft, { draft: slot, common }: Candidate): Placement {
  const { pageTokens } = draft.cache.geometry;
  const lastPage = slot.pages[Math.floor(common / pageTokens)];
  const endsInSharedPage = common % pageTokens !== 0 && lastPage !== undefined && draft.isShared(slot.slot.arena.index, lastPage);
  return { kind: "takeOver", slot: slot.slot.id, tokens: endsInSharedPage ? common - (common % pageTokens) : common };
}
