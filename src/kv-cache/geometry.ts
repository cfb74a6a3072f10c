/** The shape of a KV cache: its arenas, its slots, and the moves between them. */

/** A place in the KV cache that holds one sequence's tokens; the engine's own sequence id. */
export type SlotId = number;

/** A region of the KV cache inside which sequences can share pages without a copy. */
export interface ArenaGeometry {
  readonly pages: number;
  /** The slots that live in this arena. */
  readonly slots: readonly SlotId[];
}

export interface KvGeometry {
  readonly pageTokens: number;
  /** One arena for all slots in the unified layout, one arena for each slot in the streams layout. */
  readonly arenas: readonly ArenaGeometry[];
  /** Whether a slot can be trimmed; if not, only exact continuations of what it holds are reused. */
  readonly canTrim: boolean;
}

/** A change of what the slots hold. */
export type PageMove =
  /** Keep the first `keepTokens` tokens of the slot and forget the rest; 0 empties it. */
  | { readonly kind: "trim"; readonly slot: SlotId; readonly keepTokens: number }
  /** `to`, which is empty and in the same arena, gets the first `tokens` tokens of `from` without a copy. */
  | { readonly kind: "share"; readonly from: SlotId; readonly to: SlotId; readonly tokens: number }
  /** `to`, which is empty and in another arena, gets a copy of the first `tokens` tokens of `from`. */
  | { readonly kind: "copy"; readonly from: SlotId; readonly to: SlotId; readonly tokens: number };

/** Pages that hold `tokens` tokens. */
export function pagesFor(tokens: number, pageTokens: number): number {
  return Math.ceil(tokens / pageTokens);
}
