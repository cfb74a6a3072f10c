/**
 * The books of the KV cache: which tokens each slot holds, in which pages, and which slots run.
 * A slot is empty, running (its pages are pinned), or cached (kept for reuse until its room is needed).
 * Changes happen when a step is committed; planning works on a `KvDraft` on top.
 */
import { type KvGeometry, type PageMove, pagesFor, type SlotId } from "./geometry.js";
import { createPagePool, type PageId, type PagePool } from "./page-pool.js";
import { createPrefixTree, type PrefixTree } from "./prefix-tree.js";
import { createTokenBuffer, type TokenBuffer } from "./token-buffer.js";

export interface Slot {
  readonly id: SlotId;
  readonly arena: Arena;
  /** What the slot holds, from position 0 on. */
  readonly tokens: TokenBuffer;
  readonly pages: PageId[];
  isRunning: boolean;
  /** Trust group of the content. */
  salt: string;
}

export interface Arena {
  readonly index: number;
  readonly pool: PagePool;
  readonly slots: readonly Slot[];
  /** How many of the slots run. */
  running: number;
}

export interface KvCache {
  readonly geometry: KvGeometry;
  readonly arenas: readonly Arena[];
  readonly slots: ReadonlyMap<SlotId, Slot>;
  /** Slots that do not run, the one used longest ago first. */
  readonly idle: ReadonlySet<Slot>;
  /** As in `PrefixTree`. */
  match: PrefixTree["match"];
  apply(move: PageMove): void;
  /** The slot runs from now on: its pages are pinned. An empty slot takes the salt. */
  acquire(slot: SlotId, salt: string): void;
  /** The slot's sequence has left; what it holds stays cached. */
  release(slot: SlotId): void;
  /** What the engine's slot holds is no longer known: nothing of it is used again, and the next plan empties it first. */
  distrust(slot: SlotId): void;
  /** Slots that must be emptied before anything else happens. */
  readonly distrusted: ReadonlySet<SlotId>;
  /** Books tokens that were computed; false when the pool has no page for them, and then nothing has changed. */
  append(slot: SlotId, tokens: Int32Array): boolean;
}

export function createKvCache(geometry: KvGeometry): KvCache {
  const { pageTokens } = geometry;
  const slots = new Map<SlotId, Slot>();
  const arenas = geometry.arenas.map((shape, index) => createArena(index, shape.pages, shape.slots, slots));
  const tree: PrefixTree = createPrefixTree(pageTokens, (id) => slotOf(id).tokens);
  // A set keeps the order in which its members came, so to come again is to be the last used.
  const idle = new Set(slots.values());
  const distrusted = new Set<SlotId>();

  function slotOf(id: SlotId): Slot {
    const slot = slots.get(id);
    if (slot === undefined) throw new RangeError(`There is no slot ${id}.`);
    return slot;
  }

  function trim(slot: Slot, keepTokens: number): void {
    const keepPages = pagesFor(keepTokens, pageTokens);
    while (slot.pages.length > keepPages) {
      const page = slot.pages.pop() as PageId;
      if (slot.isRunning) slot.arena.pool.unpin(page);
      slot.arena.pool.dropOwner(page);
    }
    slot.tokens.truncate(keepTokens);
    tree.trim(slot.id, Math.floor(keepTokens / pageTokens));
  }

  function fill(slot: Slot, tokens: Int32Array, shared: readonly PageId[]): boolean {
    const lengthAfter = slot.tokens.length + tokens.length;
    if (lengthAfter < slot.pages.length * pageTokens && tokens.length === 1) {
      // Most rows of most steps: one token inside a page that the slot has, and that it does not fill.
      slot.tokens.push(tokens[0] as number);
      return true;
    }
    const needed = pagesFor(lengthAfter, pageTokens) - slot.pages.length - shared.length;
    const { pool } = slot.arena;
    if (pool.free < needed) return false;
    for (const page of shared) {
      pool.addOwner(page);
      hold(slot, page);
    }
    for (let i = 0; i < needed; i++) hold(slot, pool.take() as PageId);
    const fullBefore = Math.floor(slot.tokens.length / pageTokens);
    slot.tokens.append(tokens);
    const fullNow = Math.floor(slot.tokens.length / pageTokens);
    for (let page = fullBefore; page < fullNow; page++) tree.addPage(slot.id, slot.tokens);
    return true;
  }

  function hold(slot: Slot, page: PageId): void {
    slot.pages.push(page);
    if (slot.isRunning) slot.arena.pool.pin(page);
  }

  return {
    geometry,
    arenas,
    slots,
    idle,
    match: tree.match,
    apply(move) {
      if (move.kind === "trim") {
        trim(slotOf(move.slot), move.keepTokens);
        if (move.keepTokens === 0) distrusted.delete(move.slot);
        return;
      }
      const from = slotOf(move.from);
      const to = slotOf(move.to);
      to.salt = from.salt;
      tree.enter(to.id, from.salt);
      // Only full pages are shared: the slots go different ways inside the last one, so it is counted for both.
      const shared = move.kind === "share" ? from.pages.slice(0, Math.floor(move.tokens / pageTokens)) : [];
      if (!fill(to, from.tokens.view(0, move.tokens), shared)) throw new RangeError(`The arena has no room for a ${move.kind} of ${move.tokens} tokens.`);
      if (idle.delete(from)) idle.add(from);
    },
    acquire(id, salt) {
      const slot = slotOf(id);
      slot.isRunning = true;
      slot.arena.running++;
      idle.delete(slot);
      for (const page of slot.pages) slot.arena.pool.pin(page);
      if (slot.tokens.length > 0) return;
      slot.salt = salt;
      tree.enter(id, salt);
    },
    release(id) {
      const slot = slotOf(id);
      slot.isRunning = false;
      slot.arena.running--;
      idle.add(slot);
      for (const page of slot.pages) slot.arena.pool.unpin(page);
    },
    distrusted,
    distrust(id) {
      trim(slotOf(id), 0);
      distrusted.add(id);
    },
    append: (id, tokens) => fill(slotOf(id), tokens, []),
  };
}

function createArena(index: number, pages: number, ids: readonly SlotId[], slots: Map<SlotId, Slot>): Arena {
  const arena = { index, pool: createPagePool(pages), slots: [] as Slot[], running: 0 };
  for (const id of ids) {
    const slot: Slot = { id, arena, tokens: createTokenBuffer(), pages: [], isRunning: false, salt: "" };
    arena.slots.push(slot);
    slots.set(id, slot);
  }
  return arena;
}
