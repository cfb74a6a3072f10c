/** What goes wrong is told in OpenAI's shape, whatever it is and wherever it happens. */
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineUnavailable } from "../../src/errors.js";
import { clients } from "./clients.js";
import { answering } from "./fake-engine.js";
import { hello, type Serving, startServing } from "./serving.js";

let serving: Serving;
beforeAll(async () => {
  serving = await startServing({ server: { bodyLimit: 64 * 1024 } });
  serving.engine.onSubmit = answering("ok");
});
afterAll(() => serving.gateway.close(0));

interface Wanted {
  readonly status: number;
  readonly code: string;
  readonly param?: string | null;
}

async function expectError(response: Response, { status, code, param = null }: Wanted): Promise<{ readonly message: string }> {
  const body = (await response.json()) as { error: { message: string; type: string } };
  expect(body).toEqual({ error: expect.objectContaining({ message: expect.any(String), type: expect.any(String), param, code }) });
  expect(response.status).toBe(status);
  expect(response.headers.get("content-type")).toMatch(/^application\/json/);
  expect(response.headers.get("x-request-id")).toMatch(/^req_/);
  expect(response.headers.get("x-should-retry")).toMatch(/^(true|false)$/);
  return body.error;
}

/** Sends bytes and resolves with everything that comes back. */
function raw(bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(serving.port, "127.0.0.1");
    let answer = "";
    socket.on("data", (data) => {
      answer += data.toString();
    });
    socket.on("close", () => resolve(answer));
    socket.write(bytes);
  });
}

describe("requests that are no chat", () => {
  it.each([
    ["GET", "/nowhere", 404, "not_found"],
    ["POST", "/v1/embeddings", 404, "not_found"],
    ["GET", "/v1/chat/completions", 405, "method_not_allowed"],
    ["DELETE", "/v1/models/pagoda-test", 405, "method_not_allowed"],
    ["PUT", "/health", 405, "method_not_allowed"],
    ["OPTIONS", "/metrics", 405, "method_not_allowed"],
    ["GET", "/v1/models/%zz", 400, "invalid_request"],
  ] as const)("%s %s is %d %s", async (method, path, status, code) => {
    const response = await fetch(serving.url + path, { method });
    await expectError(response, { status, code });
    expect(response.headers.has("allow")).toBe(status === 405);
  });

  it("refuses bytes that are not HTTP, and headers without end", async () => {
    const longHeader = `GET / HTTP/1.1\r\nx: ${"x".repeat(100_000)}\r\n\r\n`;
    for (const [bytes, status] of [
      ["NONSENSE\r\n\r\n", 400],
      [longHeader, 431],
    ] as const) {
      const answer = await raw(bytes);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*x-request-id: req_[^]*\\r\\n\\r\\n\\{"error":\\{`));
    }
  });
});

describe("requests that Node would answer by itself", () => {
  it("have an id and a reason as well", async () => {
    for (const [headers, status, code] of [
      ["connection: close", 400, "invalid_request"],
      ["host: x\r\nconnection: close\r\nexpect: a-miracle", 417, "expectation_failed"],
    ] as const) {
      const answer = await raw(`GET /health HTTP/1.1\r\n${headers}\r\n\r\n`);
      expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} [^]*x-request-id: req_[^]*\r\n\r\n\\{"error":\\{.*"${code}"`));
    }
    expect(await raw("GET /health HTTP/1.0\r\n\r\n")).toMatch(/^HTTP\/1.1 200 /);
  });
});

describe("a body that is too large", () => {
  const head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
  const body = "x".repeat(9_000_000);

  it.each([
    ["of known length", `content-length: ${body.length}\r\n\r\n${body}`],
    ["in pieces", `transfer-encoding: chunked\r\n\r\n${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`],
  ])("%s is taken to its end, so that the client reads the answer, and the connection goes on", async (_what, sent) => {
    const answer = await raw(`${head}${sent}GET /health HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 413 .*request_too_large.*HTTP\/1.1 200 /s);
  });

  it("reaches the official clients", async () => {
    for (const [, Client] of clients) {
      const client = new Client({ baseURL: `${serving.url}/v1`, apiKey: "none", maxRetries: 0 });
      const asked = client.chat.completions.create({ model: "x", messages: [{ role: "user", content: body }] });
      await expect(asked).rejects.toMatchObject({ status: 413, code: "request_too_large" });
    }
  });
});

describe("refusals that are expected", () => {
  it("are no errors in the log", async () => {
    const before = serving.logged.length;
    serving.engine.state = "starting";
    expect((await fetch(`${serving.url}/ready`)).status).toBe(503);
    serving.engine.state = "ready";
    serving.engine.onSubmit = () => {
      throw engineUnavailable({ model: "m", waitedMs: 1 });
    };
    expect((await serving.post({ messages: hello })).status).toBe(503);
    serving.engine.onSubmit = answering("ok");
    const lines = serving.logged.slice(before).map((line) => JSON.parse(line) as { level: string; code?: string });
    expect(lines.filter(({ code }) => code !== undefined)).toEqual([
      expect.objectContaining({ level: "debug", code: "not_ready" }),
      expect.objectContaining({ level: "info", code: "engine_unavailable" }),
    ]);
    expect(lines.some((line) => "err" in line)).toBe(false);
  });
});

describe("bodies", () => {
  it.each([
    ["no JSON", "{", 400, "invalid_request"],
    ["nothing", "", 400, "invalid_request"],
    ["no object", "[]", 400, "invalid_request"],
    ["null", "null", 400, "invalid_request"],
    ["no UTF-8", Uint8Array.of(0x22, 0xff, 0x22), 400, "invalid_request"],
    ["too deep", `${"[".repeat(30_000)}${"]".repeat(30_000)}`, 400, "invalid_request"],
    ["too long", JSON.stringify({ messages: [{ role: "user", content: "x".repeat(70_000) }] }), 413, "request_too_large"],
  ] as const)("%s is refused", async (_what, body, status, code) => {
    await expectError(await serving.post(body), { status, code });
  });

  it("takes JSON by its own name only, so that a page of another site needs permission to post", async () => {
    const body = JSON.stringify({ messages: hello });
    for (const type of ["text/plain", "application/x-www-form-urlencoded"]) {
      await expectError(await serving.post(body, { headers: { "content-type": type } }), { status: 415, code: "unsupported_media_type" });
    }
    const untyped = await expectError(await serving.post(Buffer.from(body), { headers: {} }), { status: 415, code: "unsupported_media_type" });
    expect(untyped.message).toContain("it came without one");
    expect((await serving.post(body, { headers: { "content-type": "application/json; charset=utf-8" } })).status).toBe(200);
  });

  it("takes no compressed bodies, and says so", async () => {
    const encoded = (encoding: string) => serving.post({ messages: hello }, { headers: { "content-type": "application/json", "content-encoding": encoding } });
    const error = await expectError(await encoded("gzip"), { status: 415, code: "unsupported_content_encoding" });
    expect(error.message).toContain("'Content-Encoding: gzip'");
    expect((await encoded("identity")).status).toBe(200);
  });

  it("reads half a surrogate pair as U+FFFD", async () => {
    const response = await serving.post('{"messages":[{"role":"user","content":"a\\ud800b\\uD83D\\uDC4B"}]}');
    expect(response.status).toBe(200);
    const tokens = serving.engine.jobs.at(-1)?.request.promptTokens.filter((token) => token < 256) ?? [];
    expect(Buffer.from(tokens).toString()).toContain("a\uFFFDb👋");
  });
});

describe("fields of a chat", () => {
  const user = { role: "user", content: "hi" };
  it.each([
    [{ messages: undefined }, "messages"],
    [{ messages: null }, "messages"],
    [{ messages: "hi" }, "messages"],
    [{ messages: [] }, "messages"],
    [{ messages: ["hi"] }, "messages[0]"],
    [{ messages: [{ content: "hi" }] }, "messages[0].role"],
    [{ messages: [user, { role: "robot", content: "hi" }] }, "messages[1].role"],
    [{ messages: [{ role: "user" }] }, "messages[0].content"],
    [{ messages: [{ role: "user", content: [{ type: "text" }] }] }, "messages[0].content[0].text"],
    [{ messages: [{ role: "user", content: [{ type: "smell" }] }] }, "messages[0].content[0].type"],
    [{ temperature: -1 }, "temperature"],
    [{ temperature: "1" }, "temperature"],
    [{ top_p: 1.5 }, "top_p"],
    [{ frequency_penalty: 3 }, "frequency_penalty"],
    [{ n: 0 }, "n"],
    [{ n: 129 }, "n"],
    [{ max_tokens: 1.5 }, "max_tokens"],
    [{ max_completion_tokens: "5" }, "max_completion_tokens"],
    [{ n_predict: -2 }, "n_predict"],
    [{ top_logprobs: 3 }, "top_logprobs"],
    [{ logprobs: true, top_logprobs: 21 }, "top_logprobs"],
    [{ logit_bias: { 5: 101 } }, "logit_bias.5"],
    [{ logit_bias: 5 }, "logit_bias"],
    [{ stop: 5 }, "stop"],
    [{ stop: Array.from({ length: 33 }, () => "x") }, "stop"],
    [{ mirostat: 3 }, "mirostat"],
    [{ response_format: { type: "xml" } }, "response_format.type"],
    [{ tool_choice: "always" }, "tool_choice"],
    [{ tools: [{ type: "function", function: { name: "no spaces" } }] }, "tools[0].function.name"],
  ])("%j is refused, naming %s", async (fields, param) => {
    const error = await expectError(await serving.post({ messages: [user], ...fields }), { status: 400, code: "invalid_request", param });
    expect(error.message).toContain(`'${param}'`);
  });

  it("names the range of a number", async () => {
    const error = await expectError(await serving.post({ messages: [user], temperature: 3 }), { status: 400, code: "invalid_request", param: "temperature" });
    expect(error.message).toBe("'temperature' must be a number from 0 to 2, not 3.");
  });

  it.each([
    [{ messages: undefined }, "'messages' is missing; it must be an array of 1 to 4096 messages."],
    [{ messages: [] }, "'messages' must be an array of 1 to 4096 messages, not an empty array."],
    [
      { stop: Array.from({ length: 33 }, () => "x") },
      "'stop' must be a string or an array of at most 32 strings, each of at most 1000 characters, not an array of 33.",
    ],
    [{ tools: Array.from({ length: 129 }, () => ({})) }, "'tools' must be an array of at most 128 tools, not an array of 129."],
    [{ dry_sequence_breakers: Array.from({ length: 65 }, () => "x") }, "'dry_sequence_breakers' must be an array of at most 64 strings, not an array of 65."],
    [{ messages: [{ role: "assistant" }] }, "'messages[0].content' is missing; it must be given where there are no tool_calls."],
    [{ temperature: {} }, "'temperature' must be a number from 0 to 2, not an empty object."],
  ])("%j is told in a sentence", async (fields, message) => {
    expect(((await (await serving.post({ messages: [user], ...fields })).json()) as { error: { message: string } }).error.message).toBe(message);
  });

  it.each([
    [{ response_format: { type: "json_object" } }, "response_format"],
    [{ response_format: { type: "json_schema", json_schema: { name: "x", schema: {} } } }, "response_format"],
    [{ grammar: "root ::= x" }, "grammar"],
    [{ json_schema: {} }, "json_schema"],
    [{ functions: [{ name: "f" }] }, "functions"],
    [{ function_call: "auto" }, "function_call"],
    [{ audio: { voice: "x" } }, "audio"],
    [{ modalities: ["text", "audio"] }, "modalities"],
    [{ web_search_options: {} }, "web_search_options"],
    [{ tool_choice: "required", tools: [{ type: "function", function: { name: "f" } }] }, "tool_choice"],
    [{ messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: "data:" } }] }] }, "messages[0].content[0].type"],
  ])("%j is refused as not supported, never ignored", async (fields, param) => {
    await expectError(await serving.post({ messages: [user], ...fields }), { status: 400, code: "unsupported_parameter", param });
  });

  it("takes null for any optional field, and ignores fields it does not know", async () => {
    const fields = [
      ...["model", "temperature", "top_p", "n", "seed", "stop", "stream", "stream_options", "logprobs", "top_logprobs", "logit_bias", "response_format"],
      ...["tools", "tool_choice", "functions", "audio", "grammar", "max_tokens", "metadata", "user", "service_tier", "frequency_penalty", "modalities"],
    ];
    const nulls = Object.fromEntries(fields.map((field) => [field, null]));
    const response = await serving.post({ messages: [{ ...user, name: null }], ...nulls, never_heard_of: { it: 1 } });
    expect(response.status).toBe(200);
  });

  it("refuses a prompt that does not fit, in the words of both worlds, also before a stream", async () => {
    for (const stream of [false, true]) {
      const response = await serving.post({ messages: [{ role: "user", content: "x".repeat(600) }], stream });
      const error = await expectError(response, { status: 400, code: "context_length_exceeded", param: "messages" });
      expect(error).toMatchObject({ type: "exceed_context_size_error", n_ctx: 512, n_prompt_tokens: expect.any(Number) });
      expect(error.message).toMatch(/exceeds the available context size.*maximum context length/);
    }
  });
});

describe("the request's id", () => {
  it("is the client's own if it is fit for a log, else a new one", async () => {
    const idFor = async (id: string) => (await fetch(`${serving.url}/health`, { headers: { "x-request-id": id } })).headers.get("x-request-id");
    expect(await idFor("my-id_1:2")).toBe("my-id_1:2");
    expect(await idFor("a b")).toMatch(/^req_/);
    expect(await idFor("x".repeat(200))).toMatch(/^req_/);
  });
});
