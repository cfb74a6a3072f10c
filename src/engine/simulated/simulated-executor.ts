/**
 * An executor without a model, for tests and simulations. It keeps cells as llama.cpp does and chooses every token from a hash of all the tokens
 * that the slot really holds, so a wrong move, a lost page or a mixed-up slot shows in the text. Positions that do not follow on are an error at once.
 */
import type { KvGeometry, PageMove, SlotId } from "../../kv-cache/geometry.js";
import type { Row, RowResult, StepOutcome, StepPlan } from "../../scheduler/step-plan.js";
import type { Executor, SequenceStart } from "../executor/executor.js";

export interface SimulatedModel {
  readonly vocabularySize: number;
  /** About one token in this many ends the answer; 0 for never. */
  readonly endOneIn: number;
}

export const simulatedEndToken = 0;

/** The token that follows these: a pure function, the same alone and in any batch. */
export function simulatedNextToken(tokens: Iterable<number>, model: SimulatedModel): number {
  let hash = 0x9e3779b9;
  for (const token of tokens) hash = Math.imul((hash ^ token) + 0x7f4a7c15, 0x85ebca6b) ^ (hash >>> 13);
  hash = Math.imul(hash ^ (hash >>> 16), 0xc2b2ae35) >>> 0;
  if (model.endOneIn > 0 && hash % model.endOneIn === 0) return simulatedEndToken;
  return 1 + ((hash >>> 8) % (model.vocabularySize - 1));
}

/** What a lone, undisturbed run of this prompt gives: the law that every schedule is held to. */
export function simulatedSoloRun(promptTokens: readonly number[], maxTokens: number, contextTokens: number, model: SimulatedModel): number[] {
  const tokens = [...promptTokens];
  const output: number[] = [];
  while (output.length < maxTokens && tokens.length < contextTokens) {
    const token = simulatedNextToken(tokens, model);
    output.push(token);
    tokens.push(token);
    if (token === simulatedEndToken) break;
  }
  return output;
}

const simulatedFault: RowResult = {
  kind: "failed",
  error: { code: "simulated_fault", status: 500, type: "server_error", retryable: false, message: "The simulation makes this row fail." },
};

interface Cell {
  readonly token: number;
  owners: number;
}

interface SimulatedSlot {
  readonly arena: { readonly capacity: number; used: number; readonly index: number };
  cells: Cell[];
}

export interface SimulatedExecutor extends Executor {
  /** Tokens that the slot holds. */
  contentOf(slot: SlotId): number[];
  /** Cells in use, over all arenas. */
  readonly usedCells: number;
}

export interface SimulatedOptions {
  readonly kv: KvGeometry;
  readonly model: SimulatedModel;
  /** Called before a step's rows are computed; may wait, to play a slow engine, or throw, to play a broken one. */
  readonly beforeRows?: (plan: StepPlan) => Promise<void> | void;
  /** A row for which this holds is computed, or a part of it, and then fails. */
  readonly failsRow?: (row: Row) => boolean;
  /** A move for which this holds leaves its target empty. */
  readonly failsMove?: (move: PageMove) => boolean;
}

export function createSimulatedExecutor({ kv, model, beforeRows, failsRow, failsMove }: SimulatedOptions): SimulatedExecutor {
  const arenas = kv.arenas.map((arena, index) => ({ capacity: arena.pages * kv.pageTokens, used: 0, index }));
  const slots = new Map<SlotId, SimulatedSlot>();
  kv.arenas.forEach((arena, index) => {
    for (const id of arena.slots) slots.set(id, { arena: arenas[index] as SimulatedSlot["arena"], cells: [] });
  });

  function slotOf(id: SlotId): SimulatedSlot {
    const slot = slots.get(id);
    if (slot === undefined) throw new RangeError(`There is no slot ${id}.`);
    return slot;
  }

  function truncate(slot: SimulatedSlot, length: number): void {
    for (const cell of slot.cells.splice(length)) if (--cell.owners === 0) slot.arena.used--;
  }

  function applyMove(move: PageMove): void {
    if (move.kind === "trim") {
      const slot = slotOf(move.slot);
      if (move.keepTokens > slot.cells.length) throw new RangeError(`Slot ${move.slot} cannot keep ${move.keepTokens} of ${slot.cells.length} tokens.`);
      if (!kv.canTrim && move.keepTokens > 0) throw new RangeError("This model's slots cannot be trimmed.");
      return truncate(slot, move.keepTokens);
    }
    const from = slotOf(move.from);
    const to = slotOf(move.to);
    if (to.cells.length > 0) throw new RangeError(`Slot ${move.to} is not empty.`);
    if (from.cells.length < move.tokens) throw new RangeError(`Slot ${move.from} holds ${from.cells.length} tokens, not ${move.tokens}.`);
    if ((from.arena === to.arena) !== (move.kind === "share")) throw new RangeError(`A ${move.kind} from slot ${move.from} to ${move.to} is not possible.`);
    const source = from.cells.slice(0, move.tokens);
    if (move.kind === "share") for (const cell of source) cell.owners++;
    else to.arena.used += source.length;
    to.cells = move.kind === "share" ? source : source.map(({ token }) => ({ token, owners: 1 }));
    if (to.arena.used > to.arena.capacity) throw new RangeError(`Arena ${to.arena.index} holds more than it can.`);
  }

  function computeRow(row: Row): RowResult {
    const slot = slotOf(row.slot);
    if (slot.cells.length !== row.start) throw new RangeError(`Slot ${row.slot} holds ${slot.cells.length} tokens, the row starts at ${row.start}.`);
    if (slot.arena.used + row.tokens.length > slot.arena.capacity) return { kind: "noRoom" };
    for (const token of row.tokens) slot.cells.push({ token, owners: 1 });
    slot.arena.used += row.tokens.length;
    if (row.logits === "none") return { kind: "computed" };
    const token = simulatedNextToken(
      slot.cells.map((cell) => cell.token),
      model,
    );
    return { kind: "sampled", token, isEndOfGeneration: token === simulatedEndToken };
  }

  function computeOrFail(row: Row): RowResult {
    if (failsRow?.(row) !== true) return computeRow(row);
    computeRow({ ...row, tokens: row.tokens.subarray(0, 1 + (row.start % row.tokens.length)) });
    return simulatedFault;
  }

  return {
    get usedCells() {
      return arenas.reduce((sum, arena) => sum + arena.used, 0);
    },
    contentOf: (id) => slotOf(id).cells.map((cell) => cell.token),
    begin(_start: SequenceStart) {},
    end() {},
    async execute(plan): Promise<StepOutcome> {
      const broken = new Set<SlotId>();
      for (const move of plan.moves) {
        const [source, target] = move.kind === "trim" ? [move.slot, move.slot] : [move.from, move.to];
        if (broken.has(source) || failsMove?.(move) === true) {
          broken.add(target);
          truncate(slotOf(target), 0);
        } else applyMove(move);
      }
      await beforeRows?.(plan);
      return { results: plan.rows.map((row) => (broken.has(row.slot) ? simulatedFault : computeOrFail(row))), brokenSlots: [...broken] };
    },
  };
}
