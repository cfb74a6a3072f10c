/** Streams byte by byte, and what ends them early. */
import { afterEach, describe, expect, it } from "vitest";
import { answering } from "./fake-engine.js";
import { eventually, hello, rawRequest, type Serving, type ServingOptions, sample, startServing } from "./serving.js";

let serving: Serving;
afterEach(() => serving.gateway.close(0));

async function serve(options: ServingOptions = {}): Promise<void> {
  serving = await startServing(options);
}

interface Chunk {
  readonly id: string;
  readonly object: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly choices: readonly {
    readonly index: number;
    readonly delta: { readonly content?: string | null };
    readonly logprobs: unknown;
    readonly finish_reason: string | null;
  }[];
  readonly usage?: object | null;
  readonly timings?: Readonly<Record<string, number>>;
}

/** Splits a stream into its payloads, and fails on any byte that is not framing, a comment or a payload. */
function payloads(body: string): string[] {
  const events = body.split("\n\n");
  expect(events.pop()).toBe(""); // also the last event ends with its blank line
  const data = events.filter((event) => event !== ":");
  for (const event of data) expect(event).toMatch(/^data: [^\n]+$/);
  return data.map((event) => event.slice("data: ".length));
}

function chunks(body: string): Chunk[] {
  const all = payloads(body);
  expect(all.pop()).toBe("[DONE]");
  return all.map((payload) => JSON.parse(payload) as Chunk);
}

async function streamed(fields: object = {}): Promise<{ readonly response: Response; readonly body: string }> {
  const response = await serving.post({ messages: hello, stream: true, ...fields });
  return { response, body: await response.text() };
}

describe("a stream", () => {
  it("is a role chunk, chunks of text, a finish chunk and [DONE], all of one id", async () => {
    await serve();
    serving.engine.onSubmit = answering("añ");
    const { response, body } = await streamed();
    expect(response.headers.get("content-type")).toMatch(/^text\/event-stream/);
    expect(response.headers.get("cache-control")).toContain("no-cache");
    expect(response.headers.get("content-encoding")).toBeNull();
    expect(response.headers.get("server-timing")).toMatch(/entry;dur=[\d.]+, tokenize;dur=[\d.]+, submit;dur=[\d.]+/);
    const all = chunks(body);
    expect(all.map((chunk) => chunk.choices[0])).toEqual([
      { index: 0, delta: { role: "assistant", content: null }, logprobs: null, finish_reason: null },
      { index: 0, delta: { content: "a" }, logprobs: null, finish_reason: null },
      { index: 0, delta: { content: "ñ" }, logprobs: null, finish_reason: null },
      { index: 0, delta: {}, logprobs: null, finish_reason: "stop" },
    ]);
    for (const chunk of all) {
      expect(chunk).toMatchObject({ id: all[0]?.id, created: all[0]?.created, object: "chat.completion.chunk", model: "pagoda-test" });
      expect(chunk.system_fingerprint).toBe("b1-test");
      expect(chunk).not.toHaveProperty("usage");
    }
    expect(all[0]?.id).toMatch(/^chatcmpl-/);
    expect(Object.values(all.at(-1)?.timings ?? {}).every(Number.isFinite)).toBe(true);
    expect(all.at(-1)?.timings).toMatchObject({ predicted_n: 4, cache_n: 0 });
  });

  it("ends with one chunk of usage when asked, and the others say null", async () => {
    await serve();
    serving.engine.onSubmit = (job) => {
      job.start(0, 3);
      job.start(1, 9);
      for (const index of [0, 1]) {
        job.say("ab", index);
        job.end(index);
      }
    };
    const all = chunks((await streamed({ n: 2, stream_options: { include_usage: true } })).body);
    const last = all.pop();
    expect(last).toMatchObject({ id: all[0]?.id, choices: [], usage: { completion_tokens: 6, prompt_tokens_details: { cached_tokens: 3 } } });
    for (const chunk of all) expect(chunk.usage).toBeNull();
    expect(all.filter((chunk) => chunk.choices[0]?.finish_reason === "stop").map((chunk) => chunk.choices[0]?.index)).toEqual([0, 1]);
    expect(chunks((await streamed({ stream_options: null })).body).every((chunk) => !("usage" in chunk))).toBe(true);
  });

  it("never splits a character, and shows bytes that are none as U+FFFD", async () => {
    await serve();
    serving.engine.onSubmit = (job) => {
      job.say("👋");
      job.say(Uint8Array.of(0xff, 0x41, 0xf0, 0x9f));
      job.end();
    };
    const all = chunks((await streamed({ logprobs: true })).body);
    const texts = all.flatMap((chunk) => chunk.choices[0]?.delta.content ?? []);
    expect(texts).toEqual(["👋", "\uFFFD", "A", "\uFFFD"]);
    const entries = all.flatMap((chunk) => (chunk.choices[0]?.logprobs as { content: { bytes: number[] }[] } | null)?.content ?? []);
    expect(entries.flatMap((entry) => entry.bytes)).toEqual([...Buffer.from("👋"), 0xff, 0x41, 0xf0, 0x9f]);
  });

  it("sends what was held back for a stop string that did not come", async () => {
    await serve();
    serving.engine.onSubmit = answering("x STO");
    expect((await streamed({ stop: ["STOP", ""] })).body).toContain('"content":"STO"');
  });

  it("sends its headers when the engine has taken the request, and comments while it waits", async () => {
    await serve({ server: { pingInterval: 20 } });
    const response = await serving.post({ messages: hello, stream: true }); // resolves with the headers: no token is there yet
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const first = await reader.read();
    const second = await reader.read();
    expect(Buffer.from([...(first.value ?? []), ...(second.value ?? [])]).toString()).toMatch(/^(:\n\n)+$/);
    const job = await serving.engine.job(0);
    job.say("x");
    job.end();
    let rest = "";
    for (let next = await reader.read(); !next.done; next = await reader.read()) rest += Buffer.from(next.value).toString();
    expect(chunks(rest)).toHaveLength(3);
  });

  it("ends with an error when its time is over, and a whole answer with status 504", async () => {
    await serve({ server: { requestTimeout: 200 } });
    const { body } = await streamed();
    const [payload, ...others] = payloads(body);
    expect(others).toEqual([]);
    expect(JSON.parse(payload ?? "")).toEqual({
      error: { message: expect.stringContaining("200 ms"), type: "server_error", param: null, code: "request_timeout" },
    });
    const whole = await serving.post({ messages: hello });
    expect([whole.status, whole.headers.get("x-should-retry")]).toEqual([504, "false"]);
    for (const job of serving.engine.jobs) await job.whenCancelled;
    expect(await sample(serving, 'vllm:num_requests_waiting{model_name="pagoda-test"}')).toBe(0);
  });
});

describe("a reader that stalls", () => {
  it("is cut off, while the others go on, and holds no more than the buffer", async () => {
    await serve({ server: { slowReaderTimeout: 300, streamBuffer: 64 * 1024 } });
    const stalled = rawRequest(serving.port, { messages: hello, stream: true });
    stalled.pause();
    const job = await serving.engine.job(0);
    const other = serving.post({ messages: hello, stream: true });
    const otherJob = await serving.engine.job(1);

    // More than what the system buffers for a connection: 100,000 tokens are about 20 MB of chunks.
    job.start();
    job.say("x".repeat(100_000));
    otherJob.start();
    otherJob.say("undisturbed");
    otherJob.end();
    expect(chunks(await (await other).text()).length).toBeGreaterThan(2);

    await job.whenCancelled;
    expect(job.unread).toBeGreaterThan(50_000); // the gateway stopped reading instead of piling up
    await eventually(async () => (await sample(serving, 'pagoda_streams_cut_total{reason="slow_reader"}')) === 1);
    expect(serving.logged.join("")).toContain('"code":"slow_reader"');
    expect(await sample(serving, 'vllm:num_requests_running{model_name="pagoda-test"}')).toBe(0);
    stalled.destroy();
  });

  it("gets all of its stream if it goes on in time", async () => {
    await serve({ server: { streamBuffer: 64 * 1024 } });
    const slow = await serving.post({ messages: hello, stream: true });
    const job = await serving.engine.job(0);
    job.start();
    job.say("x".repeat(100_000));
    job.end();
    let unread = 0;
    await eventually(() => {
      const isPaused = unread === job.unread;
      unread = job.unread;
      return isPaused;
    });
    expect(unread).toBeGreaterThan(0);
    expect((await slow.text()).split('"content":"x"')).toHaveLength(100_001);
  });
});

describe("closing", () => {
  it("lets a running stream finish, and refuses new work meanwhile", async () => {
    await serve();
    const running = await serving.post({ messages: hello, stream: true });
    const job = await serving.engine.job(0);
    const closed = serving.gateway.close(20_000);
    const ready = await fetch(`${serving.url}/ready`);
    expect(ready.status).toBe(503);
    const refused = await serving.post({ messages: hello });
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([503, true]);
    expect(await refused.json()).toMatchObject({ error: { code: "shutting_down" } });
    job.say("end");
    job.end();
    expect(chunks(await running.text()).at(-1)?.choices[0]?.finish_reason).toBe("stop");
    await closed;
    await expect(fetch(`${serving.url}/health`)).rejects.toThrow();
  });

  it("cuts off with an error what does not finish in time", async () => {
    await serve();
    const running = await serving.post({ messages: hello, stream: true });
    const job = await serving.engine.job(0);
    const whole = serving.post({ messages: hello });
    await serving.engine.job(1);
    const closed = serving.gateway.close(10);
    expect(JSON.parse(payloads(await running.text())[0] ?? "")).toMatchObject({ error: { code: "shutting_down" } });
    expect((await whole).status).toBe(503);
    await job.whenCancelled;
    await closed;
  });
});
