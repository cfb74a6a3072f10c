/** Moves of cached tokens between slots, as llama.cpp does them fastest. */
import { cacheMoveFailed, toWireError, type WireError } from "../../errors.js";
import type { PageMove, SlotId } from "../../scheduler/step-plan.js";
import type { LlamaContext } from "../llama/context.js";
import { callAsync } from "../llama/functions.js";
import { createSlab } from "../llama/slab.js";

export interface CacheMoves {
  /** Applies the moves in order. The result names the slots that a failed move left empty. */
  apply(moves: readonly PageMove[]): Promise<ReadonlyMap<SlotId, WireError>>;
  free(): void;
}

export function createCacheMoves(context: LlamaContext): CacheMoves {
  const { model, memory, pointer, maxSequences } = context;
  const { native } = model.llama;
  const slab = createSlab();

  function trim(slot: SlotId, keepTokens: number): string | undefined {
    // A sliding window would drop the tail without complaint, but what lies before it is no longer whole.
    const isPartial = keepTokens > 0 && !model.canTrim && native.llama_memory_seq_pos_max(memory, slot) >= keepTokens;
    const isDone = !isPartial && native.llama_memory_seq_rm(memory, slot, keepTokens > 0 ? keepTokens : -1, -1);
    return isDone ? undefined : "the model's cache cannot drop a part of a sequence.";
  }

  function share(from: SlotId, to: SlotId, tokens: number): string | undefined {
    // In the streams layout a share would be a copy of a whole buffer, and of a part it would end the process.
    if (context.layout === "streams") return "slots of different streams cannot share.";
    // A cache that cannot be trimmed holds exactly these tokens, and is copied as a whole.
    native.llama_memory_seq_cp(memory, from, to, model.canTrim ? 0 : -1, model.canTrim ? tokens : -1);
    return undefined;
  }

  async function copy(from: SlotId, to: SlotId, tokens: number): Promise<string | undefined> {
    const bytes = native.llama_state_seq_get_size(pointer, from);
    const address = slab.reserve(bytes);
    const written = await callAsync(native.llama_state_seq_get_data, pointer, address, bytes, from);
    if (written === 0) return "the source could not be read.";
    const read = await callAsync(native.llama_state_seq_set_data, pointer, address, written, to);
    if (read === 0) return "the target has no room.";
    return model.canTrim ? trim(to, tokens) : undefined;
  }

  async function applyOne(move: PageMove): Promise<string | undefined> {
    const slots = move.kind === "trim" ? [move.slot] : [move.from, move.to];
    if (slots.some((slot) => slot < 0 || slot >= maxSequences)) return "there is no such slot.";
    if (move.kind === "trim") return trim(move.slot, move.keepTokens);
    return move.kind === "share" ? share(move.from, move.to, move.tokens) : copy(move.from, move.to, move.tokens);
  }

  return {
    async apply(moves) {
      const broken = new Map<SlotId, WireError>();
      for (const move of moves) {
        const target = move.kind === "trim" ? move.slot : move.to;
        const source = move.kind === "trim" ? move.slot : move.from;
        const reason = broken.has(source) ? "the source is empty after a failed move." : await applyOne(move);
        if (reason === undefined) continue;
        broken.set(target, toWireError(cacheMoveFailed({ move: describe(move), reason })));
        if (target >= 0 && target < maxSequences) trim(target, 0);
      }
      return broken;
    },
    free: slab.free,
  };
}

function describe(move: PageMove): string {
  if (move.kind === "trim") return `trim slot ${move.slot} to ${move.keepTokens} tokens`;
  return `${move.kind} ${move.tokens} tokens from slot ${move.from} to slot ${move.to}`;
}
