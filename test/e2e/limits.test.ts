/** What does not fit is refused at once, in words that programs understand, and disturbs nobody. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clients } from "../gateway/clients.js";
import { ask, clientsOf, expectedAnswer, pieces, refusal } from "./asking.js";
import { type Server, startServer, untilFigure, untilIdle } from "./server.js";
import { forced, questions, type Task } from "./tasks.js";

let server: Server;
beforeAll(async () => {
  server = await startServer("scheduler.maxSequences=1", "scheduler.maxQueuedRequests=1", "kv.layout=unified", "kv.tokens=1024");
});
afterAll(async () => {
  await server.stop();
});

const [first] = questions as [Task, ...Task[]];

describe.each(clients.map(([name, Client], index) => [name, Client, index] as const))("%s", (_name, Client, index) => {
  const client = () => clientsOf(server)[index as 0 | 1];

  test.each([false, true])("one request runs, one waits, and a third gets 429 while both go on (streamed: %s)", async (stream) => {
    const unfinished = new Set(["running", "waiting"]);
    const finished = (name: string) => () => unfinished.delete(name);
    const long = forced("abcdefgh", 600);
    const { come, onText } = pieces(1);
    const running = ask(client(), long.fields, { stream: true, onText });
    void running.then(finished("running"));
    await come;
    const waiting = ask(client(), first.fields);
    void waiting.then(finished("waiting"));
    await untilFigure(server, "vllm:num_requests_waiting", 1);

    const thrown = await refusal(client(), first.fields, { stream });
    expect(thrown).toBeInstanceOf(Client.RateLimitError);
    const { status, code, type, headers } = thrown as InstanceType<typeof Client.APIError>;
    expect({ status, code, type }).toEqual({ status: 429, code: "queue_full", type: "rate_limit_error" });
    expect([headers?.get("retry-after"), headers?.get("x-should-retry")]).toEqual([expect.stringMatching(/^([1-9]|[1-5]\d|60)$/), "true"]);
    expect(unfinished).toEqual(new Set(["running", "waiting"]));

    expect(await running).toMatchObject(expectedAnswer(long));
    expect(await waiting).toMatchObject(expectedAnswer(first));
    await untilIdle(server);
  });

  test.each([false, true])("a prompt that can never fit gets 400 and the numbers (streamed: %s)", async (stream) => {
    const fields = { messages: [{ role: "user" as const, content: "brave fox ".repeat(2000) }] };
    const thrown = await refusal(client(), fields, { stream });
    expect(thrown).toBeInstanceOf(Client.BadRequestError);
    const { status, code, type, headers, error, message } = thrown as InstanceType<typeof Client.APIError>;
    expect({ status, code, type }).toEqual({ status: 400, code: "context_length_exceeded", type: "exceed_context_size_error" });
    expect(error).toMatchObject({ n_ctx: 1024, n_prompt_tokens: expect.any(Number) });
    expect((error as { n_prompt_tokens: number }).n_prompt_tokens).toBeGreaterThan(2000);
    expect(message).toMatch(/exceeds the available context size.*maximum context length/);
    expect([headers?.get("retry-after"), headers?.get("x-should-retry")]).toEqual([null, "false"]);
    expect(headers?.get("content-type")).toMatch(/^application\/json/);
  });
});

test("of a very long prompt the answer tells a number of tokens that it has at least, and nobody waits for it", async () => {
  const [client] = clientsOf(server);
  const tokensOf = async (content: string) => {
    const thrown = (await refusal(client, { messages: [{ role: "user" as const, content }] })) as {
      code: string;
      message: string;
      error: { n_prompt_tokens: number };
    };
    expect(thrown.code).toBe("context_length_exceeded");
    return { tokens: thrown.error.n_prompt_tokens, isLeast: thrown.message.includes("at least") };
  };
  for (const text of ["brave fox ", "Fünf größere Äpfel, déjà vu. ", "日本語のテキスト", "x", "{}[]();\n", "👋🏽"]) {
    const exact = await tokensOf(text.repeat(60_000 / text.length));
    const least = await tokensOf(text.repeat(120_000 / text.length));
    expect([exact.isLeast, least.isLeast]).toEqual([false, true]);
    expect(least.tokens).toBeGreaterThan(1024);
    expect(least.tokens).toBeLessThanOrEqual(2 * exact.tokens + 1);
  }
  await untilIdle(server);
});

test("a prompt that just fits is answered, up to the end of the context", async () => {
  const [client] = clientsOf(server);
  const messages = [{ role: "user" as const, content: "brave fox ".repeat(450) }];
  const { usage, finishes } = await ask(client, { messages, ignore_eos: true, temperature: 0 });
  expect(usage.prompt_tokens).toBeGreaterThan(900);
  expect([usage.total_tokens, finishes]).toEqual([1024, ["length"]]);
  await untilIdle(server);
});
