/** The metrics of one model: its choices' way from waiting to the end, and its engines' figures. */
import { type EngineFigures, growthBetween } from "./engine-figures.js";
import type { Instruments } from "./instruments.js";

export type FinishedReason = "stop" | "length" | "abort" | "error";

export interface FinishedChoice {
  readonly reason: FinishedReason;
  readonly promptTokens: number;
  readonly generatedTokens: number;
  readonly endToEndMs: number;
  /** From the end of waiting to the first token; absent when there was none. */
  readonly prefillMs?: number;
  /** From the first token to the last; absent when there was no token. */
  readonly decodeMs?: number;
}

export interface ModelMetrics {
  /** Adds to the choices that wait for an engine. */
  addWaiting(count: number): void;
  /** Adds to the choices that an engine works on. */
  addRunning(count: number): void;
  observeQueue(queueMs: number): void;
  /** A choice's first token, `sinceArrivalMs` after the request came in. */
  observeFirstToken(sinceArrivalMs: number): void;
  /** A request's prompt is computed; once for each request, whatever its number of choices. */
  countPrompt(tokens: number, cachedTokens: number): void;
  countGeneratedToken(): void;
  observeInterToken(gapMs: number): void;
  observeFinish(choice: FinishedChoice): void;
  /** What the model's live engines report now. Figures that were read before are recognised and not counted twice. */
  readEngines(figures: readonly EngineFigures[]): void;
  /** Engine starts after the first ones, counted since the process began. */
  readRestarts(restarts: number): void;
  setCacheConfig(config: { readonly pageTokens: number; readonly pages: number; readonly layout: string }): void;
}

const finishedReasons: readonly FinishedReason[] = ["stop", "length", "abort", "error"];

/** Makes the metrics of one model. Handles are bound once here, so that a token costs no label lookup. */
export function createModelMetrics(instruments: Instruments, name: string): ModelMetrics {
  const { gauges, counters, histograms } = bind(instruments, name);
  startAtZero(instruments, name);
  let restartsRead = 0;

  return {
    addWaiting: (count) => gauges.waiting.inc(count),
    addRunning: (count) => gauges.running.inc(count),
    observeQueue: (queueMs) => histograms.queue.observe(queueMs / 1000),
    observeFirstToken: (sinceArrivalMs) => histograms.timeToFirstToken.observe(sinceArrivalMs / 1000),
    countPrompt(tokens, cachedTokens) {
      counters.promptTokens.inc(tokens);
      counters.promptTokensCached.inc(cachedTokens);
    },
    countGeneratedToken: () => counters.generationTokens.inc(),
    observeInterToken: (gapMs) => histograms.interToken.observe(gapMs / 1000),
    observeFinish(choice) {
      instruments.finished.inc({ model_name: name, finished_reason: choice.reason });
      histograms.endToEnd.observe(choice.endToEndMs / 1000);
      histograms.requestPromptTokens.observe(choice.promptTokens);
      histograms.requestGenerationTokens.observe(choice.generatedTokens);
      if (choice.prefillMs !== undefined) histograms.prefill.observe(choice.prefillMs / 1000);
      if (choice.decodeMs === undefined) return;
      histograms.decode.observe(choice.decodeMs / 1000);
      histograms.inference.observe(((choice.prefillMs ?? 0) + choice.decodeMs) / 1000);
      if (choice.generatedTokens > 1) histograms.timePerOutputToken.observe(choice.decodeMs / 1000 / (choice.generatedTokens - 1));
    },
    readEngines: engineReader(instruments, name),
    readRestarts(restarts) {
      counters.engineRestarts.inc(Math.max(0, restarts - restartsRead));
      restartsRead = restarts;
    },
    setCacheConfig: ({ pageTokens, pages, layout }) =>
      instruments.cacheConfig.set({ model_name: name, block_size: pageTokens, num_gpu_blocks: pages, kv_layout: layout }, 1),
  };
}

function engineReader(instruments: Instruments, name: string): (figures: readonly EngineFigures[]) => void {
  const { gauges, counters, histograms } = bind(instruments, name);
  let last: readonly EngineFigures[] = [];
  return (figures) => {
    const total = sum(figures, (f) => f.pagesTotal);
    const used = sum(figures, (f) => f.pagesUsed);
    const cached = sum(figures, (f) => f.pagesCached);
    gauges.kvUsage.set(total === 0 ? 0 : used / total);
    for (const [state, pages] of Object.entries({ used, cached, free: total - used - cached })) {
      instruments.pages.set({ model_name: name, state }, pages);
    }
    const growth = growthBetween(last, figures);
    counters.preemptions.inc(growth.preemptions);
    counters.prefixQueries.inc(growth.prefixQueryTokens);
    counters.prefixHits.inc(growth.prefixHitTokens);
    for (const step of figures) {
      const tokens = step.decodeRows + step.prefillTokens;
      if (tokens > 0 && !last.includes(step)) histograms.iterationTokens.observe(tokens);
    }
    last = figures;
  };
}

/** A series that appears only with its first event hides that event from `rate()`. */
function startAtZero(instruments: Instruments, name: string): void {
  const labels = { model_name: name };
  for (const gauge of Object.values(instruments.gauges)) gauge.set(labels, 0);
  for (const counter of Object.values(instruments.counters)) counter.inc(labels, 0);
  for (const histogram of Object.values(instruments.histograms)) histogram.zero(labels);
  for (const reason of finishedReasons) instruments.finished.inc({ ...labels, finished_reason: reason }, 0);
}

function bind({ gauges, counters, histograms }: Instruments, name: string) {
  const bound = <N extends string, Child>(all: { readonly [K in N]: { labels(name: string): Child } }) =>
    Object.fromEntries(Object.entries<{ labels(name: string): Child }>(all).map(([key, metric]) => [key, metric.labels(name)])) as {
      readonly [K in N]: Child;
    };
  return { gauges: bound(gauges), counters: bound(counters), histograms: bound(histograms) };
}

function sum(figures: readonly EngineFigures[], of: (figures: EngineFigures) => number): number {
  return figures.reduce((total, one) => total + of(one), 0);
}
