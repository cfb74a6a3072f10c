/** The metrics' names, help texts and buckets. The `vllm:` ones are vLLM's, so that its dashboards and autoscalers work here. */

const secondsToFirstToken = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560];
const secondsBetweenTokens = [0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const secondsOfRequest = [0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680];
const tokensOfRequest = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000, 200_000];
const tokensOfStep = [1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384];

/** Gauges, each with the label `model_name`. */
export const gauges = {
  running: ["vllm:num_requests_running", "Choices that an engine is working on. A preempted choice counts as running."],
  waiting: ["vllm:num_requests_waiting", "Choices that wait for an engine."],
  kvUsage: ["vllm:kv_cache_usage_perc", "Share of the KV cache that running choices hold, from 0 to 1."],
} as const;

/** Counters, each with the label `model_name`. */
export const counters = {
  prefixQueries: ["vllm:prefix_cache_queries_total", "Prompt tokens that were looked up in the prefix cache."],
  prefixHits: ["vllm:prefix_cache_hits_total", "Prompt tokens that were found in the prefix cache."],
  preemptions: ["vllm:num_preemptions_total", "Times that a running sequence gave its place up for another."],
  promptTokens: ["vllm:prompt_tokens_total", "Prompt tokens of requests that got their first token, reused ones included."],
  promptTokensCached: ["vllm:prompt_tokens_cached_total", "Those prompt tokens that were reused from the cache."],
  generationTokens: ["vllm:generation_tokens_total", "Tokens generated."],
  engineRestarts: ["pagoda_engine_restarts_total", "Times that an engine process was started again."],
} as const;

/** Histograms, each with the label `model_name`. All count choices: a request with n = 3 counts three times. */
export const histograms = {
  timeToFirstToken: ["vllm:time_to_first_token_seconds", "From the request's arrival to a choice's first token.", secondsToFirstToken],
  interToken: ["vllm:inter_token_latency_seconds", "Between two tokens of a choice.", secondsBetweenTokens],
  timePerOutputToken: ["vllm:request_time_per_output_token_seconds", "A choice's mean time between tokens.", secondsBetweenTokens],
  endToEnd: ["vllm:e2e_request_latency_seconds", "From the request's arrival to a choice's end.", secondsOfRequest],
  queue: ["vllm:request_queue_time_seconds", "In the engine's queue.", secondsOfRequest],
  prefill: ["vllm:request_prefill_time_seconds", "From the end of waiting to the first token.", secondsOfRequest],
  decode: ["vllm:request_decode_time_seconds", "From the first token to the last.", secondsOfRequest],
  inference: ["vllm:request_inference_time_seconds", "From the end of waiting to the last token.", secondsOfRequest],
  requestPromptTokens: ["vllm:request_prompt_tokens", "Prompt tokens of a finished choice.", tokensOfRequest],
  requestGenerationTokens: ["vllm:request_generation_tokens", "Tokens generated for a finished choice.", tokensOfRequest],
  iterationTokens: ["vllm:iteration_tokens_total", "Tokens that one engine step computed.", tokensOfStep],
} as const;
