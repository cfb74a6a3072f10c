/** Carries out step plans with llama.cpp: moves, then the rows in as few llama_decode calls as are fast, then sampling. */
import { asPagodaError, cacheMoveFailed, decodeFailed, internalError, rowRejected, toWireError, type WireError } from "../../errors.js";
import type { Row, RowResult, SequenceId, SlotId } from "../../scheduler/step-plan.js";
import type { LlamaContext } from "../llama/context.js";
import { createSamplerFactory, type Sampler } from "../sampling/sampler.js";
import type { Executor } from "./executor.js";
import { createCacheMoves } from "./llama-moves.js";
import { groupRows } from "./row-groups.js";

export interface LlamaExecutorOptions {
  readonly context: LlamaContext;
  /** Whether decoding rows and prompt chunks are computed by calls of their own. By default so on a CPU, where one mixed call is slower. */
  readonly splitCalls?: boolean;
  /** Whether each row must begin where its slot ends. For tests of schedulers: llama.cpp itself accepts any position in an empty slot. */
  readonly checkPositions?: boolean;
}

export interface LlamaExecutor extends Executor {
  /** Time spent so far, for measuring what the rest of a step costs. */
  readonly spent: { readonly decodeMs: number; readonly samplingMs: number };
  /** Frees the samplers; the context stays its owner's. No step may be running. */
  close(): void;
}

/** Rows that `llama_decode` takes in one call, as indices into the plan's rows. */
type Group = readonly number[];

export function createLlamaExecutor(options: LlamaExecutorOptions): LlamaExecutor {
  const { context, splitCalls = context.model.llama.backend === "cpu", checkPositions = false } = options;
  const { endOfGeneration } = context.model;
  const factory = createSamplerFactory(context);
  const moves = createCacheMoves(context);
  const samplers = new Map<SequenceId, Sampler>();
  const spent = { decodeMs: 0, samplingMs: 0 };

  function end(sequence: SequenceId): void {
    samplers.get(sequence)?.free();
    samplers.delete(sequence);
  }

  async function computeGroup(rows: readonly Row[], group: Group, results: RowResult[]): Promise<void> {
    const lastIndices = fillBatch(context, rows, group);
    const endCollecting = context.model.llama.log.collect({ expected: true });
    const startMs = performance.now();
    const status = await context.decode();
    spent.decodeMs += performance.now() - startMs;
    const lines = endCollecting();
    if (status === 0) return sampleGroup(rows, group, lastIndices, results);
    if (status !== 1 && status !== -1) throw decodeFailed({ status, reason: lines.join(" | ") || "llama.cpp gave no reason." });
    // Nothing of the call was computed. Which row is at fault shows when they are computed apart.
    if (group.length > 1) {
      for (const part of splitGroup(group, status)) await computeGroup(rows, part, results);
      return;
    }
    const index = group[0] as number;
    results[index] = status === 1 ? { kind: "noRoom" } : { kind: "failed", error: toWireError(rowRejected({ reason: lines[0] ?? "unknown." })) };
  }

  function sampleGroup(rows: readonly Row[], group: Group, lastIndices: readonly number[], results: RowResult[]): void {
    const startMs = performance.now();
    let output = 0;
    group.forEach((index, place) => {
      const row = rows[index] as Row;
      results[index] = row.logits === "none" ? { kind: "computed" } : sampleRow(row, lastIndices[place] as number, output++);
    });
    spent.samplingMs += performance.now() - startMs;
  }

  function sampleRow(row: Row, batchIndex: number, output: number): RowResult {
    try {
      const sampler = samplers.get(row.sequence);
      if (sampler === undefined) throw internalError({}, { cause: new Error(`Sequence ${row.sequence} has not begun.`) });
      const { token, logprob } = sampler.sample(batchIndex, output);
      const isEndOfGeneration = endOfGeneration.has(token);
      return logprob === undefined ? { kind: "sampled", token, isEndOfGeneration } : { kind: "sampled", token, isEndOfGeneration, logprob };
    } catch (error) {
      return { kind: "failed", error: toWireError(asPagodaError(error)) };
    }
  }

  return {
    spent,
    begin(start) {
      end(start.sequence);
      samplers.set(start.sequence, factory.create(start));
    },
    end,
    async execute({ moves: planned, rows }) {
      const brokenSlots = await moves.apply(planned);
      const results = new Array<RowResult>(rows.length);
      const sound = rows
        .map((_, index) => index)
        .filter((index) => {
          const error = faultOf(rows[index] as Row, context, brokenSlots) ?? (checkPositions ? positionFaultOf(rows[index] as Row, context) : undefined);
          if (error !== undefined) results[index] = { kind: "failed", error };
          return error === undefined;
        });
      for (const group of groupRows(rows, sound, { splitCalls, batchTokens: context.batchTokens })) await computeGroup(rows, group, results);
      return { results, brokenSlots: [...brokenSlots.keys()] };
    },
    close() {
      for (const sampler of samplers.values()) sampler.free();
      samplers.clear();
      factory.free();
      moves.free();
    },
  };
}

function fillBatch({ batch }: LlamaContext, rows: readonly Row[], group: Group): number[] {
  batch.clear();
  return group.map((index) => {
    const { tokens, slot, start, logits } = rows[index] as Row;
    return batch.add(tokens, slot, start, logits === "last");
  });
}

/** No room may fit half of the rows; a refused row is found among single ones. */
function splitGroup(group: Group, status: number): Group[] {
  if (status === -1) return group.map((index) => [index]);
  const middle = group.length >> 1;
  return [group.slice(0, middle), group.slice(middle)];
}

/** What would make llama.cpp abort the process is found before it is called. */
function faultOf(row: Row, context: LlamaContext, brokenSlots: ReadonlyMap<SlotId, WireError>): WireError | undefined {
  const broken = brokenSlots.get(row.slot);
  if (broken !== undefined) return broken;
  if (row.slot < 0 || row.slot >= context.maxSequences) return toWireError(cacheMoveFailed({ move: `use slot ${row.slot}`, reason: "there is no such slot." }));
  if (row.tokens.length === 0 || row.tokens.length > context.batchTokens) {
    return toWireError(rowRejected({ reason: `a row of ${row.tokens.length} tokens does not fit a batch of ${context.batchTokens}.` }));
  }
  return undefined;
}

function positionFaultOf(row: Row, { model, memory }: LlamaContext): WireError | undefined {
  const held = model.llama.native.llama_memory_seq_pos_max(memory, row.slot) + 1;
  return held === row.start ? undefined : toWireError(rowRejected({ reason: `the row starts at ${row.start}, but slot ${row.slot} holds ${held} tokens.` }));
}
