/** `/metrics` of a server that has worked, against what its clients saw. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { ask, type CostedAnswer, clientsOf, expectAllAnswered, pieces } from "./asking.js";
import { type Server, startServer, untilEngines, untilIdle } from "./server.js";
import { cycles, forced, questions, type Task } from "./tasks.js";

let server: Server;
beforeAll(async () => {
  server = await startServer("scheduler.maxSequences=8");
});
afterAll(async () => {
  await server.stop();
});

const model = { model_name: "pagoda-tiny" };

function sum(answers: readonly CostedAnswer[], count: (usage: CostedAnswer["usage"]) => number): number {
  return answers.reduce((total, { usage }) => total + count(usage), 0);
}

test("the counters add up to what the answers told", async () => {
  const [client] = clientsOf(server);
  const [first] = questions as [Task, ...Task[]];
  const forcedTasks = cycles.map((cycle, index) => forced(cycle, 20 + index));
  const answers = [
    ...(await expectAllAnswered(server, [...questions.slice(0, 24), ...forcedTasks], { stream: true })),
    ...(await expectAllAnswered(server, questions.slice(24))),
    await ask(client, { ...first.fields, n: 3 }),
    await ask(client, { ...first.fields, stop: "3, 4" }, { stream: true }),
  ];
  await expect(ask(client, { ...first.fields, temperature: 9 })).rejects.toThrow();
  await untilIdle(server);

  const figure = (name: string, labels = {}) => server.figure(name, { ...model, ...labels });
  const choices = questions.length + forcedTasks.length + 3 + 1;
  const generated = sum(answers, (usage) => usage.completion_tokens);
  expect(generated).toBeGreaterThan(1000);
  expect(await figure("vllm:generation_tokens_total")).toBe(generated);
  expect(await figure("vllm:prompt_tokens_total")).toBe(sum(answers, (usage) => usage.prompt_tokens));
  const cached = sum(answers, (usage) => usage.prompt_tokens_details?.cached_tokens ?? 0);
  expect(await figure("vllm:prompt_tokens_cached_total")).toBe(cached);
  expect(cached).toBeGreaterThan(0);
  // The engine looks up each choice's prompt, the gateway counts a request's prompt once.
  expect(await figure("vllm:prefix_cache_queries_total")).toBeGreaterThanOrEqual(await figure("vllm:prompt_tokens_total"));
  expect(await figure("vllm:prefix_cache_hits_total")).toBeGreaterThanOrEqual(cached);

  const byReason = ["stop", "length", "abort", "error"].map((reason) => figure("vllm:request_success_total", { finished_reason: reason }));
  expect(await Promise.all(byReason)).toEqual([choices - forcedTasks.length, forcedTasks.length, 0, 0]);
  for (const histogram of ["time_to_first_token", "e2e_request_latency", "request_queue_time", "request_prefill_time", "request_decode_time"]) {
    expect(await figure(`vllm:${histogram}_seconds_count`), histogram).toBe(choices);
  }
  expect(await figure("vllm:inter_token_latency_seconds_count")).toBe(generated - choices);
  expect(await figure("vllm:request_generation_tokens_sum")).toBe(generated);
  // A step's tokens are what was computed: all outputs but each choice's last, and what of the prompts was not cached.
  expect(await figure("vllm:iteration_tokens_total_sum")).toBeGreaterThanOrEqual(generated - choices);
  const route = { route: "/v1/chat/completions" };
  expect(await server.figure("pagoda_http_requests_total", { ...route, status: "200" })).toBe(answers.length);
  expect(await server.figure("pagoda_http_requests_total", { ...route, status: "400" })).toBe(1);
});

test("a client that leaves is counted as one, and the engine stops working for it", async () => {
  const [client] = clientsOf(server);
  const [counted, computed] = ["vllm:generation_tokens_total", "vllm:iteration_tokens_total_sum"] as const;
  const before = [await server.figure(counted), await server.figure(computed)] as const;
  const controller = new AbortController();
  const { come, onText } = pieces(10);
  void come.then(() => controller.abort());
  await expect(ask(client, forced("abcdefgh", 1900).fields, { stream: true, signal: controller.signal, onText })).rejects.toThrow();
  await untilIdle(server);
  expect(await server.figure("vllm:request_success_total", { ...model, finished_reason: "abort" })).toBe(1);
  expect(await server.figure("pagoda_streams_cut_total", { reason: "client_disconnected" })).toBe(1);
  expect((await server.figure(counted)) - before[0]).toBeGreaterThanOrEqual(10);
  expect((await server.figure(computed)) - before[1]).toBeLessThan(1900); // the engine did not go on for nobody
});

test("counters never fall, whatever happens to the engine", async () => {
  const counters = async () => [...(await server.figures())].filter(([name]) => /^(vllm|pagoda)\S*_(total|count|sum|bucket)(\{|$)/.test(name));
  const before = await counters();
  expect(before.length).toBeGreaterThan(100);
  await server.killEngine();
  await untilEngines(server, 1);
  await expectAllAnswered(server, questions.slice(0, 4));
  const after = new Map(await counters());
  for (const [name, value] of before) expect(after.get(name), name).toBeGreaterThanOrEqual(value);
  expect(await server.figure("pagoda_engine_restarts_total", model)).toBe(1);
});
