/** Bodies, paths and methods that no client should send: always an answer in the agreed shape, never a fault of the server, and nothing left behind. */
import { fc, test } from "@fast-check/vitest";
import { afterAll, beforeAll, expect } from "vitest";
import { expectAllAnswered } from "./asking.js";
import { type Server, startServer, untilIdle } from "./server.js";
import { questions } from "./tasks.js";

let server: Server;
beforeAll(async () => {
  // Answers are short whatever is asked for: the context ends them.
  server = await startServer("sampling.maxTokens=4", "kv.layout=unified", "kv.tokens=192", "scheduler.maxQueuedRequests=1000", "server.bodyLimit=16KiB");
});
afterAll(async () => {
  await server.stop();
});

const soundFields: Readonly<Record<string, unknown>> = {
  messages: [
    { role: "system", content: "You are a helpful assistant." },
    { role: "user", content: [{ type: "text", text: "Hello!" }], name: "Anna" },
    { role: "assistant", content: null, tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Rome"}' } }] },
    { role: "tool", content: "sunny", tool_call_id: "call_1" },
  ],
  model: "pagoda-tiny",
  stream: true,
  stream_options: { include_usage: true },
  n: 2,
  max_tokens: 3,
  temperature: 0.5,
  top_p: 0.9,
  seed: 7,
  stop: ["one", "two"],
  logprobs: true,
  top_logprobs: 2,
  logit_bias: { 100: 5, 200: -100 },
  frequency_penalty: 0.5,
  presence_penalty: -0.5,
  response_format: { type: "text" },
  tools: [{ type: "function", function: { name: "get_weather", parameters: { type: "object", properties: { city: { type: "string" } } } } }],
  tool_choice: "auto",
  metadata: { a: "b" },
  user: "someone",
  top_k: 40,
  min_p: 0.05,
  typical_p: 0.9,
  repeat_penalty: 1.1,
  repeat_last_n: 32,
  dry_multiplier: 0.8,
  dry_sequence_breakers: ["\n"],
  xtc_probability: 0.5,
  mirostat: 0,
  top_n_sigma: 1,
  min_keep: 1,
  dynatemp_range: 0.5,
  ignore_eos: false,
  cache_prompt: true,
  chat_template_kwargs: { enable_thinking: false },
  reasoning_effort: "low",
};
const required = ["messages"];

const awkward = fc.oneof(
  fc.constantFrom<unknown>(
    null,
    true,
    false,
    0,
    -0,
    -1,
    1,
    2,
    0.5,
    128,
    129,
    2 ** 31,
    -(2 ** 31),
    2 ** 53,
    1e308,
    -1e308,
    "",
    "0",
    "NaN",
    [],
    {},
    [[]],
    [null],
    { a: null },
  ),
  fc.constantFrom<unknown>("<|im_end|>", "\u0000", "\ud800", "🙂", "a".repeat(5000), "__proto__", "{{ 7 * 7 }}", "{% raw %}", "../../etc/passwd"),
  fc.jsonValue({ maxDepth: 3 }),
);

/** The paths of all values inside a value. */
function pathsOf(value: unknown, path: readonly string[] = []): (readonly string[])[] {
  if (typeof value !== "object" || value === null) return [path];
  return [path, ...Object.entries(value).flatMap(([key, member]) => pathsOf(member, [...path, key]))];
}

/** A copy of the value in which what is at the path is another value, or is missing. */
function replaced(value: unknown, [key, ...rest]: readonly string[], by: { readonly value?: unknown }): unknown {
  if (key === undefined) return by.value;
  const copy = Array.isArray(value) ? [...value] : { ...(value as object) };
  if (rest.length === 0 && !("value" in by)) Reflect.deleteProperty(copy, key);
  else Reflect.set(copy, key, replaced(Reflect.get(copy, key), rest, by));
  return copy;
}

/** Sound bodies of some of the fields, in which up to three values anywhere are exchanged or dropped. */
const bodies = fc
  .subarray(Object.keys(soundFields))
  .map((names) => Object.fromEntries([...new Set([...required, ...names])].map((name) => [name, soundFields[name]])))
  .chain((body) => {
    const change = fc.record({ path: fc.constantFrom(...pathsOf(body)), by: fc.oneof(fc.record({ value: awkward }), fc.constant({})) });
    return fc
      .array(change, { maxLength: 3 })
      .map((changes) => changes.reduce<unknown>((now, { path, by }) => (isObject(now) ? replacedIfThere(now, path, by) : now), body));
  });

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null;
}

/** An earlier change may have taken the path away. */
function replacedIfThere(value: unknown, path: readonly string[], by: { readonly value?: unknown }): unknown {
  const parent = path.slice(0, -1).reduce<unknown>((at, key) => (isObject(at) ? Reflect.get(at as object, key) : undefined), value);
  return path.length === 0 || isObject(parent) ? replaced(value, path, by) : value;
}

/** JSON that is damaged after it was written: cut, doubled, or with other bytes in it. */
const damagedTexts = fc.tuple(bodies, fc.nat(), fc.nat(), fc.uint8Array({ maxLength: 8 })).map(([body, from, length, bytes]) => {
  const text = Buffer.from(JSON.stringify(body) ?? "");
  const at = from % (text.length + 1);
  return Buffer.concat([text.subarray(0, at), bytes, text.subarray(at + (length % 20))]);
});

interface ErrorBody {
  readonly error: Readonly<Record<"message" | "type" | "code" | "param", unknown>>;
}

function expectError({ error }: ErrorBody): void {
  expect(error).toMatchObject({ message: expect.stringMatching(/\S/), type: expect.stringMatching(/_error$/), code: expect.stringMatching(/^[a-z_]+$/) });
  expect(["string", "object"]).toContain(typeof error.param);
  expect(error.message).not.toMatch(/\/work\/|node_modules|\bat \S+ \(/); // nothing of the inside
}

/** Reads an answer to its end and expects it to be one of those agreed. Tells its status. */
async function expectAgreed(response: Response): Promise<number> {
  const text = await response.text();
  expect(response.status, text).toBeLessThan(500);
  expect(response.headers.get("x-request-id")).toMatch(/\S/);
  if (response.status >= 400) {
    expect(response.headers.get("content-type")).toMatch(/^application\/json/);
    expectError(JSON.parse(text) as ErrorBody);
    expect(response.headers.get("x-should-retry")).toBe(String(response.status === 429));
  } else if (response.headers.get("content-type")?.startsWith("text/event-stream")) {
    expect(text).toMatch(/\n\n$/);
    const last = text.slice(text.lastIndexOf("data: ") + "data: ".length).trim();
    // A request may turn out in the middle to leave no token to choose: that is its own fault, and all that may go wrong.
    if (last !== "[DONE]") {
      const body = JSON.parse(last) as ErrorBody;
      expectError(body);
      expect(body.error.code).toBe("no_token_left");
    }
  }
  return response.status;
}

const statuses = new Map<number, number>();

async function expectAgreedAnswer(body: string | Uint8Array): Promise<void> {
  const status = await expectAgreed(await server.post(undefined, { body: body as NonNullable<RequestInit["body"]> }));
  statuses.set(status, (statuses.get(status) ?? 0) + 1);
}

/** Several at a time, so that a faulty request meets others in one step of the engine. */
const together = { minLength: 8, maxLength: 8 };

test.prop([fc.array(bodies, together)], { numRuns: 45, endOnFailure: true })(
  "bodies with values that do not belong",
  async (several) => {
    await Promise.all(several.map((body) => expectAgreedAnswer(JSON.stringify(body) ?? "")));
  },
  60_000,
);

test.prop([fc.array(damagedTexts, together)], { numRuns: 20, endOnFailure: true })(
  "bodies that are damaged",
  async (several) => {
    await Promise.all(several.map(expectAgreedAnswer));
  },
  60_000,
);

test("of those bodies some were answered and some refused", () => {
  expect([...statuses.values()].reduce((sum, count) => sum + count, 0)).toBeGreaterThanOrEqual(500);
  expect(statuses.get(200)).toBeGreaterThan(20);
  expect(statuses.get(400)).toBeGreaterThan(50);
});

const paths = fc.oneof(
  fc.constantFrom(
    "/v1/chat/completions",
    "/v1/models",
    "/v1/models/pagoda-tiny",
    "/health",
    "/ready",
    "/metrics",
    "/v1/completions",
    "/",
    "//",
    "/v1/models/%",
    "/v1/models/%ff",
  ),
  fc.string({ maxLength: 40 }).map((name) => `/v1/models/${encodeURIComponent(name.replace(/\p{Surrogate}/gu, ""))}`),
  fc.webPath(),
);
const methods = fc.constantFrom("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS");
const types = fc.constantFrom(
  "application/json",
  "application/json; charset=latin1",
  "text/plain",
  "multipart/form-data; boundary=x",
  "",
  "💥".length.toString(),
);

test.prop([paths, methods, types, fc.option(damagedTexts)], { numRuns: 150, endOnFailure: true })(
  "any path, method and kind of body",
  async (path, method, type, body) => {
    const canHaveBody = method !== "GET" && method !== "HEAD";
    const init: RequestInit = {
      method,
      headers: type === "" ? {} : { "content-type": type },
      ...(canHaveBody && body !== null && { body: body as NonNullable<RequestInit["body"]> }),
    };
    const response = await fetch(server.url + path, init);
    if (method === "HEAD") expect(response.status).toBeLessThan(500);
    else await expectAgreed(response);
  },
  60_000,
);

test("bodies that are too large or too deep are refused, and sent in pieces as well", async () => {
  const messages = [{ role: "user", content: "x".repeat(20_000) }];
  expect(await expectAgreed(await server.post({ messages }))).toBe(413);
  expect(await expectAgreed(await server.post(undefined, { body: "[".repeat(5000) }))).toBe(400);
  const pieces = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of ['{"messages":[{"role":"user",', '"content":"Hello!"}],"max_to', 'kens":1}']) controller.enqueue(Buffer.from(piece));
      controller.close();
    },
  });
  expect(await expectAgreed(await server.post(undefined, { body: pieces, duplex: "half" } as RequestInit))).toBe(200);
});

test("after all that the server is as before, and nothing is held", async () => {
  await untilIdle(server);
  expect(await server.figure("pagoda_engine_restarts_total")).toBe(0);
  expect(server.log.filter(({ level }) => level === "error" || level === "fatal")).toEqual([]);
  await expectAllAnswered(
    server,
    questions.slice(0, 32).map((task) => ({ ...task, fields: { ...task.fields, max_tokens: 100 } })),
  );
  await untilIdle(server);
});
