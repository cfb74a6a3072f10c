/** What clients see when engines die: everything once, in order, and nothing of the death. */
import { afterEach, describe, expect, test } from "vitest";
import type { LocalEngineClient } from "../../src/engine/client/index.js";
import { killEngines, type SimulatedRequest, simulatedRequest, startSimulated, until, watch } from "./harness.js";
import { poisonText, soloRun } from "./simulated-model.js";

let client: LocalEngineClient;
afterEach(() => client.close(0));

function prompt(seed: number, length: number): number[] {
  return Array.from({ length }, (_, index) => 1 + ((seed * 31 + index * 7) % 4000));
}

const outputTokens = 120;
const sixteen: readonly Required<Pick<SimulatedRequest, "id" | "promptTokens" | "maxTokens">>[] = Array.from({ length: 16 }, (_, index) => ({
  id: `request-${index}`,
  promptTokens: prompt(index, 40 + index),
  maxTokens: outputTokens,
}));

describe("an engine killed in mid-stream", () => {
  test.each(["unified", "streams"] as const)("leaves 16 streams as if nothing had happened, in the %s layout", async (kvLayout) => {
    client = startSimulated({ behaviour: "stepMs=2", kvLayout });
    await client.ready();
    let seen = 0;
    const kills = [200, 700, 1300];
    const onEvent = (): void => {
      seen += 1;
      if (seen === kills[0]) {
        kills.shift();
        killEngines(client);
      }
    };
    const streams = await Promise.all(sixteen.map(async (request) => watch(await client.submit(simulatedRequest(request)), onEvent)));
    await Promise.all(streams.map((stream) => stream.done));

    expect(client.restarts).toBe(3);
    streams.forEach((stream, index) => {
      const { promptTokens, maxTokens, id } = sixteen[index] as (typeof sixteen)[number];
      expect(stream.tokens()).toEqual(soloRun(promptTokens, maxTokens));
      expect(stream.events.filter((event) => event.started !== undefined)).toHaveLength(1);
      expect(stream.events.filter((event) => event.finish !== undefined)).toEqual([expect.objectContaining({ request: id, finish: "length" })]);
      expect(stream.events.at(-1)?.finish).toBe("length");
    });
  });

  test("leaves every choice of a request with several as it was, also when one was cancelled", async () => {
    client = startSimulated({ behaviour: "stepMs=2" });
    await client.ready();
    const generation = await client.submit(simulatedRequest({ id: "three", choices: 3, maxTokens: 100 }));
    let isKilled = false;
    const stream = watch(generation, (event) => {
      if (event.index !== 1 || isKilled || stream.tokens(1).length < 30) return;
      isKilled = true;
      killEngines(client);
      generation.cancel(1);
    });
    await stream.done;
    const finishes = Object.fromEntries(stream.events.flatMap(({ index, finish }) => (finish === undefined ? [] : [[index, finish]])));
    expect(client.restarts).toBe(1);
    expect(finishes).toEqual({ 0: "length", 1: "cancelled", 2: "length" });
    expect(stream.tokens(0)).toEqual(soloRun([1, 2, 3], 100));
    expect(stream.tokens(2)).toEqual(soloRun([1, 2, 3], 100));
    expect(soloRun([1, 2, 3], 100).slice(0, stream.tokens(1).length)).toEqual(stream.tokens(1));
  });

  test("during prefill computes the prompt again", async () => {
    client = startSimulated({ behaviour: "stepMs=20", maxBatchTokens: 64 });
    await client.ready();
    const promptTokens = prompt(5, 1500);
    const stream = watch(await client.submit(simulatedRequest({ id: "long", promptTokens, maxTokens: 10 })), (event) => {
      if (event.started !== undefined) killEngines(client);
    });
    await stream.done;
    expect(client.restarts).toBe(1);
    expect(stream.tokens()).toEqual(soloRun(promptTokens, 10));
  });
});

test("a client that gets an engine killed while it starts gets another one", async () => {
  client = startSimulated({ behaviour: "loadMs=50" });
  killEngines(client);
  const stream = watch(await client.submit(simulatedRequest({ id: "early" })));
  await stream.done;
  expect(client.restarts).toBe(1);
  expect(client.state).toBe("ready");
  expect(stream.tokens()).toEqual(soloRun([1, 2, 3], 20));
});

test("a request that kills engines fails alone, and all others are answered in full", async () => {
  const poison = 4999;
  client = startSimulated({ behaviour: `stepMs=1&poison=${poison}` });
  await client.ready();
  const submit = async (request: SimulatedRequest) => watch(await client.submit(simulatedRequest(request)));
  const before = await Promise.all(sixteen.slice(0, 8).map(submit));
  const bad = await submit({ id: "bad", promptTokens: [7, poison, 9] });
  const after = await Promise.all(sixteen.slice(8).map(submit));
  await Promise.all([...before, bad, ...after].map((stream) => stream.done));

  expect(bad.events.at(-1)).toMatchObject({ finish: "error", error: { code: "engine_died_on_request", retryable: false } });
  [...before, ...after].forEach((stream, index) => {
    const { promptTokens, maxTokens } = sixteen[index] as (typeof sixteen)[number];
    expect(stream.tokens()).toEqual(soloRun(promptTokens, maxTokens));
  });
  expect(client.restarts).toBeGreaterThanOrEqual(3);
  expect(client.restarts).toBeLessThanOrEqual(4);
}, 60_000);

test("a request that kills engines when it is alone is given up at the third death", async () => {
  client = startSimulated({ behaviour: "poison=4999" });
  await client.ready();
  await expect(
    (async () => {
      const stream = watch(await client.submit(simulatedRequest({ id: "bad", promptTokens: [4999] })));
      await stream.done;
      const { finish, error } = stream.events.at(-1) ?? {};
      throw Object.assign(new Error(error?.message), { finish, code: error?.code });
    })(),
  ).rejects.toMatchObject({ code: "engine_died_on_request" });
  expect(client.restarts).toBe(3);
  await client.ready();
  const stream = watch(await client.submit(simulatedRequest({ id: "good" })));
  await stream.done;
  expect(stream.tokens()).toEqual(soloRun([1, 2, 3], 20));
}, 60_000);

test("an engine that can compute nothing any more says so and ends with code 70", async () => {
  const exits: (number | null)[] = [];
  client = startSimulated({ behaviour: "broken=4998" });
  client.onExit(({ code }) => exits.push(code));
  await client.ready();
  const stream = watch(await client.submit(simulatedRequest({ id: "breaks", promptTokens: [4998] })));
  await stream.done;
  expect(stream.events.at(-1)).toMatchObject({ finish: "error", error: { code: "engine_died_on_request" } });
  expect(exits).toEqual([70, 70, 70]);
}, 60_000);

test("a text that kills the engine which tokenizes it fails alone", async () => {
  client = startSimulated();
  await client.ready();
  const options = { addSpecial: false };
  const bad = client.tokenize([{ text: poisonText, parseSpecial: false }], options);
  const good = client.tokenize([{ text: "abc", parseSpecial: false }], options);
  await expect(bad).rejects.toMatchObject({ code: "engine_died_on_request" });
  await expect(good).resolves.toEqual([[97, 98, 99]]);
}, 60_000);

test("requests and texts that wait for a restart are served after it", async () => {
  client = startSimulated({ behaviour: "loadMs=100" });
  await client.ready();
  killEngines(client);
  await until(() => client.state === "restarting");
  const tokens = client.tokenize([{ text: "a", parseSpecial: false }], { addSpecial: false });
  const stream = watch(await client.submit(simulatedRequest({ id: "waited" })));
  await stream.done;
  await expect(tokens).resolves.toEqual([[97]]);
  expect(stream.tokens()).toEqual(soloRun([1, 2, 3], 20));
});

test("with several replicas, the streams of one that dies go on", async () => {
  client = startSimulated({ behaviour: "stepMs=2" }, { replicas: 2 });
  await client.ready();
  await until(() => client.pids().length === 2);
  let isKilled = false;
  const streams = await Promise.all(
    sixteen.map(async (request) =>
      watch(await client.submit(simulatedRequest(request)), (event) => {
        if (isKilled || event.token === undefined) return;
        isKilled = true;
        process.kill(client.pids()[0] as number, "SIGKILL");
      }),
    ),
  );
  await Promise.all(streams.map((stream) => stream.done));
  streams.forEach((stream, index) => {
    const { promptTokens, maxTokens } = sixteen[index] as (typeof sixteen)[number];
    expect(stream.tokens()).toEqual(soloRun(promptTokens, maxTokens));
  });
  expect(client.restarts).toBe(1);
});
