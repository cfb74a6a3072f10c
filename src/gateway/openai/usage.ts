/** What an answer cost: OpenAI's `usage` and llama-server's `timings`. */
import type { RunSummary } from "../generation-run.js";

export function usageOf({ promptTokens, cachedTokens, completionTokens }: RunSummary) {
  return {
    prompt_tokens: promptTokens,
    completion_tokens: completionTokens,
    total_tokens: promptTokens + completionTokens,
    prompt_tokens_details: { cached_tokens: cachedTokens, audio_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0, audio_tokens: 0, accepted_prediction_tokens: 0, rejected_prediction_tokens: 0 },
  };
}

/** Always finite. Each choice's first token comes with the prompt, so it costs no step of its own. */
export function timingsOf(summary: RunSummary) {
  const promptTokens = summary.promptTokens - summary.cachedTokens;
  const steps = Math.max(0, summary.completionTokens - summary.choices);
  return {
    cache_n: summary.cachedTokens,
    prompt_n: promptTokens,
    prompt_ms: summary.prefillMs,
    prompt_per_token_ms: ratio(summary.prefillMs, promptTokens),
    prompt_per_second: ratio(promptTokens * 1000, summary.prefillMs),
    predicted_n: summary.completionTokens,
    predicted_ms: summary.decodeMs,
    predicted_per_token_ms: ratio(summary.decodeMs, steps),
    predicted_per_second: ratio(steps * 1000, summary.decodeMs),
  };
}

function ratio(dividend: number, divisor: number): number {
  return divisor > 0 ? dividend / divisor : 0;
}
