/** Follows one generation from the engine's first news to the end of its last choice. */
import type { ChoiceEvent, Generation } from "../engine/client/engine-client.js";
import { asPagodaError, internalError, PagodaError } from "../errors.js";
import type { ModelMetrics } from "../observability/index.js";
import type { Vocabulary } from "../tokenizer/index.js";
import { type AnswerPiece, createChoiceAnswer } from "./choice-answer.js";
import { type ChoiceClock, createChoiceClock } from "./choice-clock.js";

export interface RunOptions {
  readonly choices: number;
  readonly promptTokens: number;
  /** In milliseconds of `performance.now()`. */
  readonly arrivedMs: number;
  readonly vocabulary: Vocabulary;
  readonly stop: readonly string[];
  /** Only the prompt is wanted: the token that the engine gives with it is dropped. */
  readonly isPromptOnly: boolean;
  readonly metrics: ModelMetrics;
  readonly signal: AbortSignal;
  /** Takes each piece of an answer in order; the next event is read when it is done. */
  readonly onPiece: (piece: AnswerPiece) => Promise<void> | undefined;
}

/** What became of a whole request. */
export interface RunSummary {
  readonly promptTokens: number;
  /** Prompt tokens that were reused from the cache. */
  readonly cachedTokens: number;
  /** Of all choices. */
  readonly completionTokens: number;
  readonly choices: number;
  readonly queueMs: number;
  readonly prefillMs: number;
  /** From the first token to the last one of the choice that took longest. */
  readonly decodeMs: number;
}

/** A run that has begun: its choices count as waiting from the moment it was made. */
export interface GenerationRun {
  /** Reads the generation to its end. Throws the coded error of a choice that failed, or the signal's reason; then nothing runs on. */
  follow(generation: Generation): Promise<RunSummary>;
  /** Counts what has not ended as aborted by the client or as failed, by the reason; harmless when all is over. */
  abandon(reason: PagodaError): void;
}

/** Prepares to follow one generation. */
export function createGenerationRun(options: RunOptions): GenerationRun {
  const { promptTokens, metrics, signal } = options;
  const clocks = Array.from({ length: options.choices }, () => createChoiceClock(metrics, promptTokens, options.arrivedMs));
  const answers = clocks.map((_, index) => createChoiceAnswer(index, options.vocabulary, options.stop));
  const open = new Set(clocks.keys());
  let isPromptCounted = false;

  function countPrompt(): void {
    if (isPromptCounted) return;
    isPromptCounted = true;
    metrics.countPrompt(promptTokens, cachedTokens(clocks));
  }

  function takeEvent(event: ChoiceEvent, clock: ChoiceClock): AnswerPiece | undefined {
    const finish = checkedFinish(event);
    if (event.started !== undefined) clock.start(event.started);
    if (options.isPromptOnly) {
      if (event.token === undefined && finish === undefined) return undefined;
      countPrompt();
      return { index: event.index, text: "", tokens: [], finish: "length" };
    }
    if (event.token !== undefined) {
      clock.token();
      countPrompt();
    }
    return answers[event.index]?.take({ ...event, finish });
  }

  async function follow(generation: Generation): Promise<RunSummary> {
    try {
      for await (const event of generation.events) {
        signal.throwIfAborted();
        const clock = clocks[event.index];
        if (clock === undefined || !open.has(event.index)) continue; // what came after a stop string
        const piece = takeEvent(event, clock);
        if (piece === undefined) continue;
        if (piece.finish !== undefined) {
          open.delete(event.index);
          clock.finish(piece.finish);
          if (event.finish === undefined) generation.cancel(event.index);
        }
        await options.onPiece(piece);
        if (open.size === 0) return summarize(promptTokens, clocks);
      }
      signal.throwIfAborted();
      throw internalError({}, { cause: new Error("The engine's news ended before the answer did.") });
    } catch (thrown) {
      generation.cancel();
      throw thrown;
    }
  }

  return {
    follow,
    abandon(reason) {
      for (const index of open) clocks[index]?.finish(reason.code === "client_disconnected" || reason.code === "slow_reader" ? "abort" : "error");
      open.clear();
    },
  };
}

/** The end that an event reports, if it is one to tell the client; throws for the others. */
function checkedFinish(event: ChoiceEvent): "stop" | "length" | undefined {
  if (event.finish === "error") throw event.error === undefined ? internalError({}) : new PagodaError(event.error);
  if (event.finish === "cancelled") throw asPagodaError(new Error("The engine cancelled a request that nobody had cancelled."));
  return event.finish;
}

function cachedTokens(clocks: readonly ChoiceClock[]): number {
  // Choices after the first one find the prompt that it computed: only the least is reuse from before.
  const started = clocks.map((clock) => clock.times).filter((times) => times.queueMs !== undefined);
  return started.length === 0 ? 0 : Math.min(...started.map((times) => times.cachedTokens));
}

function summarize(promptTokens: number, clocks: readonly ChoiceClock[]): RunSummary {
  const times = clocks.map((clock) => clock.times);
  return {
    promptTokens,
    cachedTokens: cachedTokens(clocks),
    completionTokens: times.reduce((total, { tokens }) => total + tokens, 0),
    choices: times.length,
    queueMs: Math.min(...times.map(({ queueMs = 0 }) => queueMs)),
    prefillMs: Math.max(...times.map(({ prefillMs = 0 }) => prefillMs)),
    decodeMs: Math.max(...times.map(({ decodeMs = 0 }) => decodeMs)),
  };
}
