/** Opens the built-in model for tests, and runs sequences on it by hand. */
import { join } from "node:path";
import type { SequenceStart } from "../../src/engine/executor/executor.js";
import { createLlamaExecutor, type LlamaExecutor, type LlamaExecutorOptions } from "../../src/engine/executor/llama-executor.js";
import {
  type ContextOptions,
  createContext,
  type Llama,
  type LlamaContext,
  type LlamaModel,
  loadModel,
  openLlama,
  tokenize,
} from "../../src/engine/llama/index.js";
import type { SamplingParameters } from "../../src/engine/protocol.js";
import type { PageMove, Row, RowResult } from "../../src/scheduler/step-plan.js";

export const tinyModelFolder = join(import.meta.dirname, "../../models/pagoda-tiny");
export const tinyModelPath = join(tinyModelFolder, "pagoda-tiny.gguf");

export const openTestLlama = (): Promise<Llama> => openLlama({ backend: "cpu", libraries: "bundled", log: () => {} });

export interface Bench {
  readonly model: LlamaModel;
  readonly context: LlamaContext;
  readonly executor: LlamaExecutor;
  close(): Promise<void>;
}

/** A context of four slots with an executor. One thread: tests share their machine. */
export async function createBench(
  model: LlamaModel,
  options: Partial<ContextOptions> = {},
  executorOptions: Partial<LlamaExecutorOptions> = {},
): Promise<Bench> {
  const context = await createContext(model, {
    layout: "streams",
    kvTokens: 4 * 256,
    maxSequences: 4,
    batchTokens: 128,
    kvType: "f16",
    threads: 1,
    flashAttention: "auto",
    ...options,
  });
  const executor = createLlamaExecutor({ context, checkPositions: true, ...executorOptions });
  return {
    model,
    context,
    executor,
    async close() {
      executor.close();
      await context.close();
    },
  };
}

export async function openTinyModel(): Promise<{ llama: Llama; model: LlamaModel }> {
  const llama = await openTestLlama();
  return { llama, model: await loadModel(llama, { path: tinyModelPath, gpuLayers: 0 }) };
}

/** A conversation's first turn, as the model was trained on it. */
export async function chatTokens(model: LlamaModel, question: string): Promise<number[]> {
  const [tokens] = await tokenize(model, [{ text: `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`, parseSpecial: true }], {
    addSpecial: false,
  });
  return tokens as number[];
}

export interface Begin extends Partial<Omit<SequenceStart, "sampling">> {
  readonly sampling?: Partial<SamplingParameters>;
}

export function begin(executor: LlamaExecutor, sequence: string, { sampling, ...rest }: Begin = {}): void {
  const start = { seed: 1, ignoreEndOfGeneration: false, promptTokens: new Int32Array(0), outputTokens: [], ...rest };
  executor.begin({ ...start, sequence, sampling: { temperature: 0, ...sampling } });
}

export async function step(executor: LlamaExecutor, rows: readonly Row[], moves: readonly PageMove[] = []): Promise<readonly RowResult[]> {
  const { results } = await executor.execute({ moves, rows, preempted: [], admitted: [], ended: [] });
  return results;
}

export function row(sequence: string, slot: number, start: number, tokens: readonly number[], logits: Row["logits"] = "last"): Row {
  return { sequence, slot, start, tokens: Int32Array.from(tokens), logits };
}

export function sampled(result: RowResult | undefined): Extract<RowResult, { kind: "sampled" }> {
  if (result?.kind !== "sampled") throw new Error(`expected a sampled token, got ${JSON.stringify(result)}`);
  return result;
}

/** Generates up to `count` tokens alone in a slot, which it empties first. Ends after an end-of-generation token. */
export async function generate(executor: LlamaExecutor, prompt: readonly number[], count: number, options: Begin & { slot?: number } = {}): Promise<number[]> {
  const { slot = 0, ...start } = options;
  const known = [...prompt, ...(start.outputTokens ?? [])];
  begin(executor, "alone", { ...start, promptTokens: Int32Array.from(prompt) });
  const output: number[] = [];
  let next = row("alone", slot, 0, known);
  let moves: PageMove[] = [{ kind: "trim", slot, keepTokens: 0 }];
  while (output.length < count) {
    const [result] = await step(executor, [next], moves);
    const { token, isEndOfGeneration } = sampled(result);
    output.push(token);
    if (isEndOfGeneration) break;
    next = row("alone", slot, next.start + next.tokens.length, [token]);
    moves = [];
  }
  executor.end("alone");
  return output;
}

/** Token bytes of an answer as text, for readable expectations. */
export function textOf(model: LlamaModel, tokens: readonly number[]): string {
  const { native } = model.llama;
  const buffer = Buffer.alloc(256);
  return Buffer.concat(
    tokens.map((token) => Buffer.from(buffer.subarray(0, native.llama_token_to_piece(model.vocabulary, token, buffer, buffer.length, 0, false)))),
  ).toString("utf8");
}
