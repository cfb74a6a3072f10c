/** The engine client's contract with real processes: start, refusal, cancel, waiting, closing. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import type { LocalEngineClient } from "../../src/engine/client/index.js";
import { killEngines, processGone, quietLog, simulatedEntry, simulatedRequest, simulatedSettings, startSimulated, until, watch } from "./harness.js";
import { simulatedContextTokens, soloRun } from "./simulated-model.js";

let client: LocalEngineClient | undefined;
afterEach(async () => {
  await client?.close(0);
  client = undefined;
});

describe("start", () => {
  test("is ready with what the engine settled on", async () => {
    client = startSimulated({ maxSequences: "auto" });
    expect(client.state).toBe("starting");
    const { model, engine } = await client.ready();
    expect(client.state).toBe("ready");
    expect(model.name).toBe("simulated");
    expect(engine).toMatchObject({ maxSequences: 16, kvTokens: 16_384, contextTokens: simulatedContextTokens });
  });

  test("a load that fails is told by its own error and is not tried again", async () => {
    client = startSimulated({ behaviour: "failLoad=yes" });
    const exits: unknown[] = [];
    client.onExit((exit) => exits.push(exit));
    await expect(client.ready()).rejects.toMatchObject({ code: "invalid_request", message: "The simulated model cannot be loaded." });
    await until(() => exits.length > 0);
    expect(exits).toEqual([{ code: 1, signal: null, willRestart: false }]);
    expect(client.state).toBe("failed");
    expect(client.restarts).toBe(0);
    await expect(client.submit(simulatedRequest({ id: "late" }))).rejects.toMatchObject({ code: "engine_unavailable", status: 503 });
  });

  test("an engine that crashes again and again before it was ever ready is given up, with its last words", async () => {
    const errors: string[] = [];
    client = startSimulated({ behaviour: "crashLoad=yes" }, { log: { ...quietLog, error: (_, message) => errors.push(message) } });
    const error = await client.ready().then(
      () => undefined,
      (reason: Error) => reason,
    );
    expect(error).toMatchObject({ code: "engine_crashed" });
    expect(error?.message).toContain("signal SIGABRT");
    expect(error?.message).toContain("about to crash while loading");
    expect(client.restarts).toBe(2);
    expect(errors).toEqual([]); // whoever waits for the model tells why it is given up, once
  }, 60_000);

  test("the death of an engine that has been ready is logged as an error", async () => {
    const errors: string[] = [];
    client = startSimulated({}, { log: { ...quietLog, error: (_, message) => errors.push(message) } });
    await client.ready();
    killEngines(client);
    await until(() => client?.restarts === 1);
    expect(errors).toEqual(["engine process died and is started again"]);
  });

  test("an engine of another protocol version is refused by the client", async () => {
    client = startSimulated({}, { entry: fileURLToPath(new URL("./other-protocol-main.ts", import.meta.url)) });
    await expect(client.ready()).rejects.toMatchObject({ code: "engine_protocol_mismatch" });
    await until(() => client?.pids().length === 0);
  });

  test("a client of another protocol version is refused by the engine", async () => {
    const engine = fork(simulatedEntry, [String(process.pid)], { execArgv: ["--import", "tsx"], stdio: ["ignore", "ignore", "ignore", "ipc"] });
    await once(engine, "message");
    engine.send({ type: "load", protocolVersion: 999, settings: simulatedSettings() });
    const [answer] = await once(engine, "message");
    expect(answer).toMatchObject({ type: "loadFailed", error: { code: "engine_protocol_mismatch" } });
    expect(await once(engine, "exit")).toEqual([1, null]);
  });
});

describe("refusal", () => {
  test("a prompt that can never fit is a 400 with the numbers", async () => {
    client = startSimulated();
    const promptTokens = Array.from({ length: simulatedContextTokens }, () => 1);
    await expect(client.submit(simulatedRequest({ id: "huge", promptTokens }))).rejects.toMatchObject({
      code: "context_length_exceeded",
      status: 400,
      details: { n_prompt_tokens: simulatedContextTokens, n_ctx: simulatedContextTokens },
    });
  });

  test("a request over the queue's limit is a 429 with Retry-After, and those before it are served", async () => {
    client = startSimulated({ behaviour: "stepMs=2", maxSequences: 1, maxQueuedRequests: 1 });
    await client.ready();
    const [running, waiting] = await Promise.all(
      ["running", "waiting"].map(async (id) => watch(await (client as LocalEngineClient).submit(simulatedRequest({ id })))),
    );
    const error = await client.submit(simulatedRequest({ id: "over" })).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: "queue_full", status: 429, retryable: true });
    expect((error as { retryAfterSeconds: number }).retryAfterSeconds).toBeGreaterThan(0);
    await Promise.all([running?.done, waiting?.done]);
    expect(waiting?.tokens()).toEqual(soloRun([1, 2, 3], 20));
  });
});

describe("cancel", () => {
  test("ends a running request, frees its pages, and leaves others alone", async () => {
    client = startSimulated({ behaviour: "stepMs=2" });
    await client.ready();
    const other = watch(await client.submit(simulatedRequest({ id: "other", promptTokens: [9], maxTokens: 60 })));
    const generation = await client.submit(simulatedRequest({ id: "unwanted", maxTokens: 4000 }));
    const stream = watch(generation, ({ token }) => token !== undefined && generation.cancel());
    await Promise.all([stream.done, other.done]);
    expect(stream.events.at(-1)).toMatchObject({ finish: "cancelled" });
    expect(other.tokens()).toEqual(soloRun([9], 60));
    expect(client.stats()).toMatchObject([{ running: 0, waiting: 0, pagesUsed: 0 }]);
    generation.cancel(); // harmless afterwards
  });

  test("leaving the loop early is a cancel", async () => {
    client = startSimulated({ behaviour: "stepMs=2" });
    await client.ready();
    const generation = await client.submit(simulatedRequest({ id: "left", maxTokens: 4000 }));
    for await (const { token } of generation.events) if (token !== undefined) break;
    await until(() => client?.stats()[0]?.running === 0);
    expect(client.stats()).toMatchObject([{ pagesUsed: 0 }]);
  });

  test("a signal ends the wait for an engine as well as the generation", async () => {
    client = startSimulated({ behaviour: "loadMs=300&stepMs=2" });
    const early = new AbortController();
    const waiting = client.submit(simulatedRequest({ id: "early" }), early.signal);
    early.abort(new Error("gone"));
    await expect(waiting).rejects.toThrow("gone");

    await client.ready();
    const late = new AbortController();
    const stream = watch(
      await client.submit(simulatedRequest({ id: "late", maxTokens: 4000 }), late.signal),
      ({ token }) => token !== undefined && late.abort(),
    );
    await stream.done;
    expect(stream.events.at(-1)).toMatchObject({ finish: "cancelled" });
  });

  test("while the engine is gone it takes effect at once", async () => {
    client = startSimulated({ behaviour: "stepMs=2&loadMs=200" });
    await client.ready();
    const generation = await client.submit(simulatedRequest({ id: "lost", maxTokens: 4000 }));
    const stream = watch(generation);
    await until(() => stream.tokens().length > 0);
    killEngines(client);
    await until(() => client?.state === "restarting");
    generation.cancel();
    await stream.done;
    expect(client.state).toBe("restarting");
    expect(stream.events.at(-1)).toMatchObject({ finish: "cancelled" });
  });
});

test("a new request waits for an engine only as long as it is told to, then is a 503 with Retry-After", async () => {
  client = startSimulated({ behaviour: "loadMs=60000" }, { engineWaitMs: 50 });
  const refusal = { code: "engine_unavailable", status: 503, retryAfterSeconds: expect.any(Number) };
  await expect(client.submit(simulatedRequest({ id: "waits" }))).rejects.toMatchObject(refusal);
  await expect(client.tokenize([{ text: "a", parseSpecial: false }], { addSpecial: false })).rejects.toMatchObject(refusal);
});

test("two requests of one id are two requests", async () => {
  client = startSimulated();
  const [one, two] = await Promise.all([
    client.submit(simulatedRequest({ id: "same", promptTokens: [1] })).then((generation) => watch(generation)),
    client.submit(simulatedRequest({ id: "same", promptTokens: [2] })).then((generation) => watch(generation)),
  ]);
  await Promise.all([one.done, two.done]);
  expect(one.tokens()).toEqual(soloRun([1], 20));
  expect(two.tokens()).toEqual(soloRun([2], 20));
});

describe("close", () => {
  test("finishes what runs, takes nothing new, and leaves no process", async () => {
    client = startSimulated({ behaviour: "stepMs=2" });
    await client.ready();
    const [pid] = client.pids();
    const exits: unknown[] = [];
    client.onExit((exit) => exits.push(exit));
    const stream = watch(await client.submit(simulatedRequest({ id: "last", maxTokens: 100 })));
    const closed = client.close(30_000);
    await expect(client.submit(simulatedRequest({ id: "new" }))).rejects.toMatchObject({ code: "shutting_down", status: 503 });
    await Promise.all([closed, stream.done]);
    expect(stream.tokens()).toEqual(soloRun([1, 2, 3], 100));
    expect(exits).toEqual([{ code: 0, signal: null, willRestart: false }]);
    expect(client.state).toBe("stopped");
    await processGone(pid as number);
  });

  test("ends what has not finished in time with a coded error", async () => {
    client = startSimulated({ behaviour: "stepMs=2" });
    await client.ready();
    const stream = watch(await client.submit(simulatedRequest({ id: "cut", maxTokens: 4000 })));
    await client.close(0);
    await stream.done;
    expect(stream.events.at(-1)).toMatchObject({ finish: "error", error: { code: "shutting_down" } });
  });
});

describe("a process that started an engine and is killed", () => {
  test("takes a working engine with it", async () => {
    const gateway = fork(fileURLToPath(new URL("./gateway-main.ts", import.meta.url)), [], { execArgv: ["--import", "tsx"] });
    const [{ enginePids }] = (await once(gateway, "message")) as [{ enginePids: readonly number[] }];
    expect(enginePids).toHaveLength(1);
    gateway.kill("SIGKILL");
    await Promise.all(enginePids.map(processGone));
  });

  test("takes an engine with it that is stuck while it loads", async () => {
    const gateway = fork(fileURLToPath(new URL("./loading-gateway-main.ts", import.meta.url)), [], { execArgv: ["--import", "tsx"] });
    const [{ pid }] = (await once(gateway, "message")) as [{ pid: number }];
    gateway.kill("SIGKILL");
    await processGone(pid);
  });

  test.each(["kernel", "thread"])("takes one that is stuck in native code with it, when the %s watches", async (watcher) => {
    const parent = fork(fileURLToPath(new URL("./stuck-parent-main.ts", import.meta.url)), [watcher], { execArgv: ["--import", "tsx"] });
    const [{ pid }] = (await once(parent, "message")) as [{ pid: number }];
    parent.kill("SIGKILL");
    await processGone(pid);
  });
});
