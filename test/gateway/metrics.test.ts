/** `/metrics` read by a strict parser, and its figures against what was answered. */
import { afterEach, beforeEach, expect, it } from "vitest";
import type { EngineStats } from "../../src/engine/client/engine-client.js";
import { parseExposition } from "./exposition.js";
import { answering } from "./fake-engine.js";
import { hello, type Serving, sample, startServing } from "./serving.js";

let serving: Serving;
beforeEach(async () => {
  serving = await startServing();
  serving.engine.onSubmit = answering("four");
});
afterEach(() => serving.gateway.close(0));

const model = 'model_name="pagoda-test"';

const idle: EngineStats = {
  ...{ running: 0, waiting: 0, waitingTokens: 0, pagesTotal: 100, pagesUsed: 0, pagesCached: 0 },
  ...{ preemptions: 0, prefixQueryTokens: 0, prefixHitTokens: 0, steps: 0, stepMs: 0, decodeRows: 0, prefillTokens: 0, residentBytes: 0 },
};

async function scrape(): Promise<Map<string, number>> {
  const response = await fetch(`${serving.url}/metrics`);
  expect(response.headers.get("content-type")).toMatch(/^text\/plain; version=0\.0\.4/);
  return parseExposition(await response.text());
}

it("adds up to the usage that the answers told", async () => {
  const before = await scrape();
  expect(before.get(`vllm:generation_tokens_total{${model}}`)).toBe(0); // series exist from the start
  let promptTokens = 0;
  let completionTokens = 0;
  for (const fields of [{}, { n: 2 }, { stop: "ur" }]) {
    const { usage } = (await (await serving.post({ messages: hello, ...fields })).json()) as { usage: { prompt_tokens: number; completion_tokens: number } };
    promptTokens += usage.prompt_tokens;
    completionTokens += usage.completion_tokens;
  }
  await (await serving.post({ messages: hello, temperature: 9 })).text();
  const after = await scrape();
  for (const [name, value] of before) if (!/_perc|num_requests|pages/.test(name)) expect(after.get(name), name).toBeGreaterThanOrEqual(value);
  expect(after.get(`vllm:prompt_tokens_total{${model}}`)).toBe(promptTokens);
  expect(after.get(`vllm:generation_tokens_total{${model}}`)).toBe(completionTokens);
  expect(after.get(`vllm:request_success_total{${model},finished_reason="stop"}`)).toBe(4);
  for (const histogram of ["time_to_first_token_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds", "request_decode_time_seconds"]) {
    expect(after.get(`vllm:${histogram}_count{${model}}`), histogram).toBe(4);
  }
  expect(after.get(`vllm:inter_token_latency_seconds_count{${model}}`)).toBe(completionTokens - 4);
  expect(after.get('pagoda_http_requests_total{route="/v1/chat/completions",status="200"}')).toBe(3);
  expect(after.get('pagoda_http_requests_total{route="/v1/chat/completions",status="400"}')).toBe(1);
});

it("counts what waits and what runs, and nothing once it is over", async () => {
  serving.engine.onSubmit = () => undefined;
  const answer = serving.post({ messages: hello });
  const job = await serving.engine.job(0);
  expect(await sample(serving, `vllm:num_requests_waiting{${model}}`)).toBe(1);
  job.start();
  job.say("x");
  await new Promise((resolve) => setImmediate(resolve));
  expect(await sample(serving, `vllm:num_requests_running{${model}}`)).toBe(1);
  job.end();
  await (await answer).text();
  for (const state of ["waiting", "running"]) expect(await sample(serving, `vllm:num_requests_${state}{${model}}`)).toBe(0);
});

it("keeps an engine's counters growing over its replacement", async () => {
  serving.engine.stats = [{ ...idle, steps: 9, preemptions: 2, prefixQueryTokens: 50, prefixHitTokens: 20, pagesUsed: 25, pagesCached: 5, prefillTokens: 30 }];
  const first = await scrape();
  expect(first.get(`vllm:kv_cache_usage_perc{${model}}`)).toBe(0.25);
  expect(first.get(`pagoda_kv_pages{${model},state="free"}`)).toBe(70);
  await scrape(); // the same figures again count nothing
  serving.engine.stats = [{ ...idle, steps: 1, preemptions: 1, prefixQueryTokens: 7, prefixHitTokens: 3, decodeRows: 1 }];
  serving.engine.restarts = 1;
  const second = await scrape();
  expect(second.get(`vllm:num_preemptions_total{${model}}`)).toBe(3);
  expect(second.get(`vllm:prefix_cache_queries_total{${model}}`)).toBe(57);
  expect(second.get(`vllm:prefix_cache_hits_total{${model}}`)).toBe(23);
  expect(second.get(`vllm:iteration_tokens_total_count{${model}}`)).toBe(2);
  expect(second.get(`pagoda_engine_restarts_total{${model}}`)).toBe(1);
});

it("never lets a client make up a series or a prompt reach the log", async () => {
  await fetch(`${serving.url}/made-up-path`);
  await (await serving.post({ messages: [{ role: "user", content: "my secret" }] })).text();
  const names = [...(await scrape()).keys()].join("\n");
  expect(names).toContain('pagoda_http_requests_total{route="unmatched",status="404"}');
  expect(names).not.toContain("made-up-path");
  expect(serving.logged.join("")).toContain('"route":"/v1/chat/completions"');
  expect(serving.logged.join("")).not.toContain("secret");
});

it("says ready only while a model can answer, and healthy always", async () => {
  expect(await (await fetch(`${serving.url}/ready`)).json()).toEqual({ status: "ready", models: [{ name: "pagoda-test", state: "ready" }] });
  serving.engine.state = "restarting";
  const ready = await fetch(`${serving.url}/ready`);
  expect([ready.status, ready.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(await ready.json()).toMatchObject({ error: { code: "not_ready", models: [{ name: "pagoda-test", state: "restarting" }] } });
  for (const path of ["/health", "/v1/health"]) expect(await (await fetch(serving.url + path)).json()).toEqual({ status: "ok" });
});
