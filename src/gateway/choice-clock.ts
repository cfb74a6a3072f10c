/** Times one choice on its way from waiting to its end, and tells the metrics. */
import type { FinishedReason, ModelMetrics } from "../observability/index.js";

export interface ChoiceClock {
  /** The engine has given the choice a place; later calls are ignored. */
  start(started: { readonly queueMs: number; readonly cachedTokens: number }): void;
  token(): void;
  /** The choice is over; later calls are ignored. */
  finish(reason: FinishedReason): void;
  readonly times: ChoiceTimes;
}

/** Milliseconds. */
export interface ChoiceTimes {
  readonly queueMs: number | undefined;
  readonly cachedTokens: number;
  /** From the end of waiting to the first token. */
  readonly prefillMs: number | undefined;
  /** From the first token to the last. */
  readonly decodeMs: number | undefined;
  readonly tokens: number;
}

/** @param arrivedMs when the request came in, in milliseconds of `performance.now()`. */
export function createChoiceClock(metrics: ModelMetrics, promptTokens: number, arrivedMs: number): ChoiceClock {
  let state: "waiting" | "running" | "over" = "waiting";
  let queueMs: number | undefined;
  let cachedTokens = 0;
  const waitingSinceMs = performance.now();
  let startedMs = waitingSinceMs;
  let firstMs: number | undefined;
  let lastMs = 0;
  let tokens = 0;
  metrics.addWaiting(1);

  const prefillMs = () => (firstMs === undefined ? undefined : firstMs - startedMs);
  const decodeMs = () => (firstMs === undefined ? undefined : lastMs - firstMs);

  /** The news of a place comes only after the choice's first step, so the time in the queue says when it was. */
  function run(queuedMs: number): void {
    if (state !== "waiting") return;
    state = "running";
    startedMs = Math.min(performance.now(), waitingSinceMs + queuedMs);
    metrics.addWaiting(-1);
    metrics.addRunning(1);
  }

  return {
    start(started) {
      if (state !== "waiting") return; // a second place after a loss of the engine or a preemption
      run(started.queueMs);
      queueMs = started.queueMs;
      cachedTokens = started.cachedTokens;
      metrics.observeQueue(queueMs);
    },
    token() {
      run(0);
      const now = performance.now();
      if (firstMs === undefined) {
        firstMs = now;
        metrics.observeFirstToken(now - arrivedMs);
      } else {
        metrics.observeInterToken(now - lastMs);
      }
      lastMs = now;
      tokens += 1;
      metrics.countGeneratedToken();
    },
    finish(reason) {
      if (state === "over") return;
      if (state === "waiting") metrics.addWaiting(-1);
      else metrics.addRunning(-1);
      state = "over";
      const finished = { reason, promptTokens, generatedTokens: tokens, endToEndMs: performance.now() - arrivedMs };
      const [prefill, decode] = [prefillMs(), decodeMs()];
      metrics.observeFinish({ ...finished, ...(prefill !== undefined && { prefillMs: prefill }), ...(decode !== undefined && { decodeMs: decode }) });
    },
    get times() {
      return { queueMs, cachedTokens, prefillMs: prefillMs(), decodeMs: decodeMs(), tokens };
    },
  };
}
