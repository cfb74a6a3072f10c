/** kill -9 of engine processes: what clients get is what they would have got. */
import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { clients } from "../gateway/clients.js";
import { ask, clientsOf, expectAllAnswered, expectedAnswer, pieces, refusal } from "./asking.js";
import { copyModel, type HideableModel, type Server, startServer, untilEngines, untilFigure, untilIdle } from "./server.js";
import { coinTosses, cycles, forced, questions } from "./tasks.js";

vi.setConfig({ testTimeout: 120_000 }); // engines start and compute in the midst of tests, and the machine may be busy

const sixteen = cycles.map((cycle) => forced(cycle, 240));
const letters = forced("abcdefgh", 1000);

let server: Server;

async function restarts(): Promise<number> {
  return server.figure("pagoda_engine_restarts_total");
}

/** Runs `work`, during which one engine must die and requests must be given to another one again. */
async function expectOneLoss(work: () => Promise<unknown>): Promise<void> {
  await untilEngines(server, 1);
  const [before, lookedUp, prompts] = [await restarts(), await server.figure("vllm:prefix_cache_queries_total"), await promptTokens()];
  await work();
  expect(await restarts()).toBe(before + 1);
  // Each prompt is looked up once, and what continues in another engine a second time together with its output.
  expect((await server.figure("vllm:prefix_cache_queries_total")) - lookedUp).toBeGreaterThan((await promptTokens()) - prompts);
  await untilIdle(server);
}

async function promptTokens(): Promise<number> {
  return server.figure("vllm:prompt_tokens_total");
}

/** Kills the engine once so many pieces of text have come. */
function killAfter(number: number): () => void {
  const { come, onText } = pieces(number);
  void come.then(() => server.killEngine());
  return onText;
}

/** Kills the engine once it has generated so many tokens, then waits for what `work` began. */
async function killedAfterTokens<Result>(tokens: number, work: () => Promise<Result>): Promise<Result> {
  const generated = () => server.figure("vllm:generation_tokens_total");
  const before = await generated();
  const result = work();
  await vi.waitFor(async () => expect(await generated()).toBeGreaterThanOrEqual(before + tokens), { timeout: 20_000, interval: 5 });
  await server.killEngine();
  return result;
}

describe("with room for sixteen sequences", () => {
  beforeAll(async () => {
    server = await startServer("scheduler.maxSequences=16");
  });
  afterAll(async () => {
    await server.stop();
  });

  test("16 streams are complete, no token missing and none twice", async () => {
    await expectOneLoss(() => expectAllAnswered(server, sixteen, { stream: true, onText: killAfter(16 * 40) }));
  });

  test("16 streams survive three deaths, one after the other", async () => {
    const before = await restarts();
    const kills = [16 * 30, 16 * 80, 16 * 130].map(killAfter);
    const onText = (): void => {
      for (const count of kills) count();
    };
    await expectAllAnswered(server, sixteen, { stream: true, onText });
    expect(await restarts()).toBe(before + 3);
    await untilIdle(server);
  });

  test("16 answers that are not streamed are complete", async () => {
    await expectOneLoss(() => killedAfterTokens(16 * 30, () => expectAllAnswered(server, sixteen)));
  });

  test("questions are answered right, whatever of the answer had been sent", async () => {
    await expectOneLoss(() => expectAllAnswered(server, [...questions.slice(0, 8), ...questions.slice(-8)], { stream: true, onText: killAfter(100) }));
  });

  test.each([false, true])("both choices are complete (streamed: %s)", async (stream) => {
    const [client] = clientsOf(server);
    await expectOneLoss(async () => {
      const { usage, ...rest } = await killedAfterTokens(60, () => ask(client, { ...letters.fields, n: 2 }, { stream }));
      expect(rest).toEqual(expectedAnswer(letters, 2));
      expect(usage.completion_tokens).toBe(2 * letters.text.length);
    });
  });

  test.each([false, true])("a stop string that had begun is found and not shown (streamed: %s)", async (stream) => {
    const [client] = clientsOf(server);
    const stop = `h${"abcdefgh".repeat(120)}`; // begins with the eighth token, and from then on nothing can be shown
    await expectOneLoss(async () => {
      const answer = await killedAfterTokens(60, () => ask(client, { ...letters.fields, stop }, { stream }));
      expect(answer).toMatchObject({ texts: ["abcdefg"], finishes: ["stop"], usage: { completion_tokens: 7 + stop.length } });
    });
  });

  test("a stop string that had begun and does not come is shown", async () => {
    const [client] = clientsOf(server);
    const stop = `h${"abcdefgh".repeat(120)}?`;
    await expectOneLoss(async () => {
      const answer = await killedAfterTokens(60, () => ask(client, { ...letters.fields, stop }, { stream: true }));
      expect(answer).toMatchObject(expectedAnswer(letters));
    });
  });

  test("characters of several tokens come whole, wherever they were cut", async () => {
    const ofBytes = ["🙂", "€", "á", "🙂", "€", "á", "🙂", "€"].map((cycle, index) => forced(cycle, 200 + index));
    await expectOneLoss(() => expectAllAnswered(server, ofBytes, { stream: true, onText: killAfter(100) }));
  });

  test("sampled text goes on as its seed has it", async () => {
    const [client] = clientsOf(server);
    const undisturbed = await ask(client, coinTosses);
    expect(new Set(undisturbed.texts[0]?.match(/.{8}/g)).size).toBeGreaterThan(4);
    await expectOneLoss(async () => {
      const answer = await killedAfterTokens(60, () => ask(client, coinTosses, { stream: true }));
      expect(answer.texts).toEqual(undisturbed.texts);
    });
  });
});

describe("with room for two sequences", () => {
  let model: HideableModel;
  beforeAll(async () => {
    model = copyModel();
    server = await startServer("scheduler.maxSequences=2", "scheduler.maxQueuedRequests=6", `models=[{name: pagoda-tiny, source: ${model.path}}]`);
  });
  afterAll(async () => {
    await server.stop();
    model.remove();
  });

  test("requests that filled the queue of an engine that dies are taken by the next one, with those that ran", async () => {
    const [first, second] = [forced("abcdefgh", 1000), forced("12345678", 1000)];
    const others = cycles.slice(1, 7).map((cycle) => forced(cycle, 60));
    await expectOneLoss(async () => {
      const running = expectAllAnswered(server, [first, second], { stream: true });
      await untilFigure(server, "vllm:num_requests_running", 2);
      const waiting = [expectAllAnswered(server, others.slice(0, 3), { stream: true }), expectAllAnswered(server, others.slice(3))];
      await untilFigure(server, "vllm:num_requests_waiting", 6);
      await server.killEngine();
      await Promise.all([running, ...waiting]);
    });
  });

  test("requests that come while no engine is up wait for one", async () => {
    model.hide();
    await server.killEngine();
    await vi.waitFor(async () => expect((await fetch(`${server.url}/ready`)).status).toBe(503), { timeout: 20_000 });
    const answers = [false, true].map((stream) => expectAllAnswered(server, questions.slice(0, 4), { stream }));
    const ready = await fetch(`${server.url}/ready`);
    expect([ready.status, ready.headers.get("x-should-retry"), (await fetch(`${server.url}/health`)).status]).toEqual([503, "true", 200]);
    model.show();
    await Promise.all(answers);
  });
});

describe("with no patience while no engine is up", () => {
  let model: HideableModel;
  beforeAll(async () => {
    model = copyModel();
    server = await startServer("server.engineWait=1ms", `models=[{name: pagoda-tiny, source: ${model.path}}]`);
  });
  afterAll(async () => {
    await server.stop();
    model.remove();
  });

  test("new requests get 503 and when to come back, and a stream that had begun goes on", async () => {
    const { come, onText } = pieces(1);
    const stream = expectAllAnswered(server, [forced("abcdefgh", 1500)], { stream: true, onText });
    await come;
    model.hide();
    await server.killEngine();
    for (const [index, [, Client]] of clients.entries()) {
      const client = clientsOf(server)[index] as OpenAI;
      const thrown = await refusal(client, letters.fields, { stream: index === 0 });
      expect(thrown).toBeInstanceOf(Client.InternalServerError);
      const { status, code, headers } = thrown as InstanceType<typeof Client.APIError>;
      expect({ status, code }).toEqual({ status: 503, code: "engine_unavailable" });
      expect([headers?.get("retry-after"), headers?.get("x-should-retry")]).toEqual([expect.stringMatching(/^([1-9]|[1-5]\d|60)$/), "true"]);
    }
    model.show();
    await stream;
  });
});
