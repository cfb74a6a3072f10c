/**
 * What the KV cache would be if a plan were carried out. Planning reads and changes the draft; the cache itself stays as it is,
 * so a plan can be thrown away. Page numbers that the draft hands out are only counted, they are fixed when the step is committed.
 */
import { type PageMove, pagesFor, type SlotId } from "./geometry.js";
import type { KvCache, Slot } from "./kv-cache.js";
import type { PageId } from "./page-pool.js";

export interface DraftSlot {
  readonly slot: Slot;
  tokens: number;
  /** Pages that exist in the cache's books, in order. */
  pages: readonly PageId[];
  /** Pages after those that the draft has reserved. */
  newPages: number;
  isRunning: boolean;
  /** Pages that must not be evicted because a move still needs them. */
  protectedPages: number;
}

export interface KvDraft {
  readonly cache: KvCache;
  /** In the order in which they must happen; slots that hold nobody knows what are emptied first. */
  readonly moves: PageMove[];
  view(slot: SlotId): DraftSlot;
  /** Slots that do not run, the one used longest ago first. */
  idle(): Generator<DraftSlot>;
  /** Pages that the slot holds. */
  pagesOf(slot: SlotId): number;
  /** Pages of the arena that running slots hold. */
  pinned(arena: number): number;
  /** Slots of the arena that run. */
  running(arena: number): number;
  /** Whether a running slot holds this page of the arena. */
  isPinned(arena: number, page: PageId): boolean;
  /** Whether several slots hold this page of the arena. */
  isShared(arena: number, page: PageId): boolean;
  /** Tokens that the running slot could hold if all that is cached gave way. */
  capacity(slot: SlotId): number;
  /** Reserves pages so that a running slot can hold `tokens` tokens, at the cost of cached slots; false when running slots hold too much. */
  grow(slot: SlotId, tokens: number): boolean;
  /** The slot's sequence leaves; its pages become the last to be evicted. */
  release(slot: SlotId): void;
  /** An idle slot keeps its first `keepTokens` tokens, which do not end inside a shared page, and runs from now on. */
  takeOver(slot: SlotId, keepTokens: number): void;
  /** An idle slot of the same arena is emptied, gets the first `tokens` tokens of `from` and runs from now on. Needs a free or cached page when `tokens` ends inside a page. */
  share(from: SlotId, to: SlotId, tokens: number): void;
  /** An idle slot of another arena is emptied, gets a copy of the first `tokens` tokens of `from` and runs from now on. */
  copy(from: SlotId, to: SlotId, tokens: number): void;
}

interface DraftArena {
  free: number;
  pinned: number;
  running: number;
  readonly ownersChange: Map<PageId, number>;
  readonly pinsChange: Map<PageId, number>;
  /** Goes through the cached slots, the next to evict first; made when first needed. */
  eviction: { readonly order: Iterator<DraftSlot>; next: DraftSlot | undefined } | undefined;
}

export function createKvDraft(cache: KvCache): KvDraft {
  const { pageTokens, canTrim } = cache.geometry;
  const moves: PageMove[] = Array.from(cache.distrusted, (slot) => ({ kind: "trim", slot, keepTokens: 0 }));
  const views: (DraftSlot | undefined)[] = [];
  const released: DraftSlot[] = [];
  const arenas: DraftArena[] = cache.arenas.map(({ pool, running }) => ({
    free: pool.free,
    pinned: pool.pinned,
    running,
    ownersChange: new Map(),
    pinsChange: new Map(),
    eviction: undefined,
  }));
  /** Where in `moves` a slot's trim stands, so that trimming page by page makes one move; void once another move may depend on it. */
  const trimAt = new Map<SlotId, number>();

  const viewOf = (slot: Slot): DraftSlot => {
    let draft = views[slot.id];
    if (draft === undefined) {
      draft = { slot, tokens: slot.tokens.length, pages: slot.pages, newPages: 0, isRunning: slot.isRunning, protectedPages: 0 };
      views[slot.id] = draft;
    }
    return draft;
  };
  const view = (id: SlotId): DraftSlot => views[id] ?? viewOf(cache.slots.get(id) as Slot);
  const arenaOf = (draft: DraftSlot): DraftArena => arenas[draft.slot.arena.index] as DraftArena;

  function* idle(): Generator<DraftSlot> {
    for (const slot of cache.idle) if (views[slot.id]?.isRunning !== true) yield viewOf(slot);
    yield* released;
  }

  function changeOwners(draft: DraftSlot, page: PageId, by: number): void {
    const arena = arenaOf(draft);
    const change = (arena.ownersChange.get(page) ?? 0) + by;
    arena.ownersChange.set(page, change);
    if (by < 0 && draft.slot.arena.pool.owners(page) + change === 0) arena.free++;
  }

  function changePins(draft: DraftSlot, page: PageId, by: number): void {
    const arena = arenaOf(draft);
    const change = (arena.pinsChange.get(page) ?? 0) + by;
    arena.pinsChange.set(page, change);
    const pins = draft.slot.arena.pool.pins(page) + change;
    if (by > 0 && pins === 1) arena.pinned++;
    if (by < 0 && pins === 0) arena.pinned--;
  }

  /** Only for slots whose pages are all in the books: running slots are never trimmed. */
  function trim(draft: DraftSlot, keepTokens: number): void {
    if (draft.tokens <= keepTokens) return;
    const keepPages = pagesFor(keepTokens, pageTokens);
    for (const page of draft.pages.slice(keepPages)) changeOwners(draft, page, -1);
    draft.pages = draft.pages.slice(0, keepPages);
    draft.tokens = keepTokens;
    const move: PageMove = { kind: "trim", slot: draft.slot.id, keepTokens };
    const at = trimAt.get(draft.slot.id);
    if (at !== undefined) moves[at] = move;
    else trimAt.set(draft.slot.id, moves.push(move) - 1);
  }

  function* evictionOrder(index: number): Generator<DraftSlot> {
    const arena = cache.arenas[index];
    if (arena?.slots.length === 1) yield viewOf(arena.slots[0] as Slot);
    else for (const draft of idle()) if (draft.slot.arena === arena) yield draft;
  }

  /** Frees pages, tail first, of the cached slot that was used longest ago. The caller knows that enough pages are not pinned. */
  function makeFree(index: number, pages: number): void {
    const arena = arenas[index] as DraftArena;
    while (arena.free < pages) {
      arena.eviction ??= { order: evictionOrder(index), next: undefined };
      const { eviction } = arena;
      eviction.next ??= eviction.order.next().value;
      if (eviction.next === undefined) throw new RangeError(`Arena ${index} has no page to evict although ${arena.pinned} are pinned.`);
      const { isRunning, pages: held, protectedPages } = eviction.next;
      if (isRunning || held.length <= protectedPages) eviction.next = undefined;
      else trim(eviction.next, canTrim ? (held.length - 1) * pageTokens : 0);
    }
  }

  function reserve(draft: DraftSlot, pages: number): void {
    const arena = arenaOf(draft);
    makeFree(draft.slot.arena.index, pages);
    arena.free -= pages;
    arena.pinned += pages;
    draft.newPages += pages;
  }

  function startOn(draft: DraftSlot, pages: readonly PageId[], tokens: number): void {
    const at = released.indexOf(draft);
    if (at >= 0) released.splice(at, 1);
    draft.isRunning = true;
    draft.pages = pages;
    draft.tokens = tokens;
    arenaOf(draft).running++;
    for (const page of pages) changePins(draft, page, 1);
  }

  /** Gives `to` the tokens of `from`, which must not be evicted on the way. */
  function transfer(kind: "share" | "copy", fromId: SlotId, toId: SlotId, tokens: number): void {
    const from = view(fromId);
    const to = view(toId);
    trim(to, 0);
    from.protectedPages = pagesFor(tokens, pageTokens);
    const shared = kind === "share" ? from.pages.slice(0, Math.floor(tokens / pageTokens)) : [];
    for (const page of shared) changeOwners(to, page, 1);
    startOn(to, shared, tokens);
    reserve(to, pagesFor(tokens, pageTokens) - shared.length);
    from.protectedPages = 0;
    // The source may have been passed over while it was protected.
    arenaOf(from).eviction = undefined;
    moves.push({ kind, from: fromId, to: toId, tokens });
    trimAt.clear();
  }

  return {
    cache,
    moves,
    view,
    idle,
    pagesOf(id) {
      const draft = views[id];
      return draft === undefined ? (cache.slots.get(id) as Slot).pages.length : draft.pages.length + draft.newPages;
    },
    pinned: (arena) => (arenas[arena] as DraftArena).pinned,
    running: (arena) => (arenas[arena] as DraftArena).running,
    isPinned: (index, page) => (cache.arenas[index]?.pool.pins(page) ?? 0) + (arenas[index]?.pinsChange.get(page) ?? 0) > 0,
    isShared: (index, page) => (cache.arenas[index]?.pool.owners(page) ?? 0) + (arenas[index]?.ownersChange.get(page) ?? 0) > 1,
    capacity(id) {
      const draft = view(id);
      return (draft.pages.length + draft.newPages + draft.slot.arena.pool.total - arenaOf(draft).pinned) * pageTokens;
    },
    grow(id, tokens) {
      const slot = cache.slots.get(id) as Slot;
      if (views[id] === undefined && slot.pages.length * pageTokens >= tokens) return true;
      const draft = viewOf(slot);
      const needed = pagesFor(tokens, pageTokens) - draft.pages.length - draft.newPages;
      if (needed <= 0) return true;
      if (arenaOf(draft).pinned + needed > slot.arena.pool.total) return false;
      reserve(draft, needed);
      return true;
    },
    release(id) {
      const draft = view(id);
      draft.isRunning = false;
      released.push(draft);
      arenaOf(draft).running--;
      arenaOf(draft).eviction = undefined;
      for (const page of draft.pages) changePins(draft, page, -1);
    },
    takeOver(id, keepTokens) {
      const draft = view(id);
      trim(draft, keepTokens);
      startOn(draft, draft.pages, draft.tokens);
      trimAt.clear();
    },
    share: (from, to, tokens) => transfer("share", from, to, tokens),
    copy: (from, to, tokens) => transfer("copy", from, to, tokens),
  };
}
