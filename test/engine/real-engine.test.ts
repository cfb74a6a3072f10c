/** The engine process on the built-in model: it answers, and a kill changes nothing that a client sees. */
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, test } from "vitest";
import { createEngineClient, type LocalEngineClient } from "../../src/engine/client/index.js";
import type { EngineSettings } from "../../src/engine/protocol.js";
import { killEngines, quietLog, simulatedRequest, simulatedSettings, type WatchedStream, watch } from "./harness.js";

const modelPath = fileURLToPath(new URL("../../models/pagoda-tiny/pagoda-tiny.gguf", import.meta.url));

let client: LocalEngineClient;
afterEach(() => client.close(0));

function start(settings: Partial<EngineSettings> = {}): void {
  client = createEngineClient({
    modelName: "pagoda-tiny",
    settings: simulatedSettings({ modelPath, threads: 1, kvTokens: "auto", kvLayout: "auto", maxBatchTokens: 512, ...settings }),
    replicas: 1,
    engineWaitMs: 60_000,
    log: quietLog,
  });
}

async function encode(question: string): Promise<readonly number[]> {
  const text = `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;
  const [tokens] = await client.tokenize([{ text, parseSpecial: true }], { addSpecial: false });
  return tokens ?? [];
}

/** Tasks whose answers the model is sure of: where the likeliest two tokens are close, another shape of the batch may choose the other one. */
const tasks = [5, 6, 7, 8, 9, 10, 11, 12].flatMap((first) => [`Count from ${first} to ${first + 10}.`, `Please count from ${first} to ${first + 10}.`]);
const maxTokens = 100;

async function askAll(prompts: readonly (readonly number[])[], onToken: () => void): Promise<WatchedStream[]> {
  const streams = await Promise.all(
    prompts.map(async (promptTokens, index) =>
      watch(await client.submit({ ...simulatedRequest({ id: `q${index}`, promptTokens, maxTokens }), ignoreEndOfGeneration: false }), ({ token }) => {
        if (token !== undefined) onToken();
      }),
    ),
  );
  await Promise.all(streams.map((stream) => stream.done));
  return streams;
}

describe.each(["unified", "streams"] as const)("in the %s layout", (kvLayout) => {
  test("16 streams whose engine is killed are those of an undisturbed run", async () => {
    start({ kvLayout });
    const { engine } = await client.ready();
    expect(engine.kvLayout).toBe(kvLayout);
    const prompts = await Promise.all(tasks.map(encode));
    expect(prompts.every((prompt) => prompt.length > 8)).toBe(true);
    const undisturbed = await askAll(prompts, () => undefined);
    expect(Math.min(...undisturbed.map((stream) => stream.tokens().length))).toBeGreaterThan(20);

    let seen = 0;
    const disturbed = await askAll(prompts, () => {
      seen += 1;
      if (seen === 16 * 8) killEngines(client);
    });
    expect(client.restarts).toBe(1);
    disturbed.forEach((stream, index) => {
      expect(stream.tokens()).toEqual(undisturbed[index]?.tokens());
      expect(stream.events.at(-1)?.finish).toBe("stop");
    });
    expect(client.stats()).toMatchObject([{ running: 0, waiting: 0, pagesUsed: 0 }]);
  }, 120_000);
});

test("texts are tokenized while steps are computed, and nothing waits for the other", async () => {
  start();
  await client.ready();
  const generation = await client.submit(simulatedRequest({ id: "long", promptTokens: await encode("Tell me a story."), maxTokens: 50 }));
  const stream = watch(generation);
  const text = "The quick brown fox. ".repeat(5_000);
  const [tokens] = await client.tokenize([{ text, parseSpecial: false }], { addSpecial: false });
  expect(tokens?.length).toBeGreaterThan(10_000);
  await stream.done;
  expect(stream.tokens()).toHaveLength(50);
}, 60_000);

describe("a model that cannot be served", () => {
  test.each([
    { path: fileURLToPath(import.meta.url), what: "not a GGUF" },
    { path: `${modelPath}.missing`, what: "no file" },
  ])("$what: ready() says so", async ({ path }) => {
    start({ modelPath: path });
    await expect(client.ready()).rejects.toMatchObject({ message: expect.stringContaining(path), status: expect.any(Number) });
    expect(client.state).toBe("failed");
    expect(client.restarts).toBe(0);
  });

  test("a KV cache that does not fit: the numbers are told", async () => {
    start({ kvTokens: 2 ** 31 });
    await expect(client.ready()).rejects.toMatchObject({ code: "setting_does_not_fit", message: expect.stringContaining("kv.tokens is 2147483648") });
  });
});
