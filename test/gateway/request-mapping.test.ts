/** What a body becomes for the engine. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { GenerateRequest } from "../../src/engine/client/engine-client.js";
import { answering, contextTokens } from "./fake-engine.js";
import { hello, type Serving, startServing } from "./serving.js";

let serving: Serving;
beforeEach(async () => {
  serving = await startServing();
  serving.engine.onSubmit = answering("ok");
});
afterEach(() => serving.gateway.close(0));

async function mapped(fields: object): Promise<GenerateRequest> {
  const response = await serving.post({ messages: hello, ...fields });
  expect(response.status, await response.clone().text()).toBe(200);
  return serving.engine.jobs.at(-1)?.request as GenerateRequest;
}

describe("sampling", () => {
  it("is the plain distribution when a request is silent", async () => {
    expect((await mapped({})).sampling).toEqual({ temperature: 1 });
  });

  it("follows the configured values where a request is silent", async () => {
    await serving.gateway.close(0);
    serving = await startServing({ sampling: { temperature: 0.8, topK: 40, topP: 0.95, minP: 0.05, maxTokens: 9, seed: 5 } });
    serving.engine.onSubmit = answering("ok");
    const request = await mapped({ top_k: 0, min_p: null });
    expect(request.sampling).toEqual({ temperature: 0.8, topP: 0.95, minP: 0.05 });
    expect([request.maxTokens, request.choices[0]?.seed]).toEqual([9, 5]);
    expect((await mapped({ max_tokens: -1, seed: 6 })).maxTokens).toBeGreaterThan(9);
  });

  it("passes every field on", async () => {
    const { sampling, ignoreEndOfGeneration } = await mapped({
      ...{ temperature: 0, top_p: 0.9, top_k: 5, min_p: 0.1, typical_p: 0.8, top_n_sigma: 1, min_keep: 2 },
      ...{ repeat_penalty: 1.1, repeat_last_n: -1, frequency_penalty: 0.5, presence_penalty: -0.5 },
      ...{ dry_multiplier: 0.8, dry_base: 2, dry_allowed_length: 3, dry_penalty_last_n: 64, dry_sequence_breakers: ["."] },
      ...{ xtc_probability: 0.5, xtc_threshold: 0.2, mirostat: 2, mirostat_tau: 4, mirostat_eta: 0.2, dynatemp_range: 0.5, dynatemp_exponent: 2 },
      ignore_eos: true,
    });
    expect(ignoreEndOfGeneration).toBe(true);
    expect(sampling).toEqual({
      ...{ temperature: 0, topP: 0.9, topK: 5, minP: 0.1, typicalP: 0.8, topNSigma: 1, minKeep: 2 },
      ...{ repeatPenalty: 1.1, repeatLastN: -1, frequencyPenalty: 0.5, presencePenalty: -0.5 },
      dry: { multiplier: 0.8, base: 2, allowedLength: 3, penaltyLastN: 64, sequenceBreakers: ["."] },
      xtc: { probability: 0.5, threshold: 0.2 },
      mirostat: { version: 2, tau: 4, eta: 0.2 },
      dynamicTemperature: { range: 0.5, exponent: 2 },
    });
  });

  it.each([
    [
      { "65": -100, "66": 5 },
      [
        [65, null],
        [66, 5],
      ],
    ],
    [
      { AB: 1.5 },
      [
        [65, 1.5],
        [66, 1.5],
      ],
    ],
    [
      [
        [65, false],
        ["B", -3],
      ],
      [
        [65, null],
        [66, -3],
      ],
    ],
    [{ "-1": 5, "9999": 5, "65": false }, [[65, null]]],
    [{}, undefined],
    [null, undefined],
  ])("reads logit_bias %j", async (logit_bias, expected) => {
    expect((await mapped({ logit_bias })).sampling.logitBias).toEqual(expected);
  });

  it("gives the same seeds for the same seed, others for -1 and for each choice", async () => {
    const seeds = async (fields: object) => (await mapped(fields)).choices.map(({ seed }) => seed);
    expect(await seeds({ seed: 2 ** 32 + 1, n: 2 })).toEqual([1, 2]);
    expect(await seeds({ seed: 2 ** 32 - 1, n: 2 })).toEqual([2 ** 32 - 1, 0]);
    expect(await seeds({ seed: -7 })).toEqual([2 ** 32 - 7]);
    expect(new Set([...(await seeds({ seed: -1, n: 4 })), ...(await seeds({ n: 4 }))]).size).toBe(8);
  });
});

describe("the output's length", () => {
  it.each([
    [{ max_tokens: 5 }, 5],
    [{ max_tokens: 5, max_completion_tokens: 6 }, 6],
    [{ max_tokens: 5, max_completion_tokens: 6, n_predict: 7 }, 7],
    [{ max_tokens: 5, max_completion_tokens: null }, 5],
  ])("%j is %d", async (fields, expected) => {
    expect((await mapped(fields)).maxTokens).toBe(expected);
  });

  it.each([[{}], [{ max_tokens: null }], [{ max_tokens: -1 }], [{ max_tokens: 1_000_000 }]])("%j is what the context leaves", async (fields) => {
    const { maxTokens, promptTokens } = await mapped(fields);
    expect(maxTokens + promptTokens.length).toBe(contextTokens);
  });

  it("0 computes the prompt and answers nothing", async () => {
    for (const stream of [false, true]) {
      const text = await (await serving.post({ messages: hello, max_tokens: 0, stream, stream_options: { include_usage: true } })).text();
      expect(text).toMatch(/"finish_reason":"length"/);
      expect(text).toMatch(/"completion_tokens":0/);
      expect(text).not.toMatch(/"content":"[^"]/);
    }
  });
});

describe("the prompt", () => {
  const promptText = async (fields: object) => Buffer.from((await mapped(fields)).promptTokens.filter((token) => token < 256)).toString();

  it("takes content as text, as parts, null and absent", async () => {
    const calls = [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }];
    const prompts = await Promise.all(
      [{ content: null }, {}, { content: "" }].map((content) => promptText({ messages: [...hello, { role: "assistant", tool_calls: calls, ...content }] })),
    );
    expect(new Set(prompts).size).toBe(1);
    const parts = [
      { type: "text", text: "one", prompt_cache_breakpoint: {} },
      { type: "text", text: "two" },
    ];
    expect(await promptText({ messages: [{ role: "user", content: parts }] })).toContain("one\ntwo");
    expect(await promptText({ messages: [{ role: "developer", content: "be kind" }, ...hello] })).toContain("be kind");
  });

  it("takes back the messages of its own answers", async () => {
    const own = { role: "assistant", content: "hello", refusal: null, annotations: [], audio: null, function_call: null, tool_calls: null, parsed: null };
    expect(await promptText({ messages: [...hello, own, ...hello] })).toContain("hello");
  });

  it("shares no computed prefix when cache_prompt is false", async () => {
    expect((await mapped({})).salt).toBe("");
    const salts = [(await mapped({ cache_prompt: false })).salt, (await mapped({ cache_prompt: false })).salt];
    expect(new Set(["", ...salts]).size).toBe(3);
  });
});

describe("the model", () => {
  it("answers by its own name, whatever a request calls it", async () => {
    for (const model of [undefined, "pagoda-test", "pagoda-test-alias", "gpt-4o"]) {
      expect(await (await serving.post({ messages: hello, model })).json()).toMatchObject({ model: "pagoda-test" });
    }
  });

  it("is looked for among several, and the first one answers requests without a name", async () => {
    await serving.gateway.close(0);
    serving = await startServing({ models: ["first", "org/second"] });
    serving.engine.onSubmit = answering("ok");
    const answerOf = async (model?: string) => (await serving.post({ messages: hello, model })).json();
    expect(await answerOf()).toMatchObject({ model: "first" });
    expect(await answerOf("org/second-alias")).toMatchObject({ model: "org/second" });
    expect(await answerOf("third")).toMatchObject({ error: { code: "model_not_found", param: "model", message: expect.stringContaining("'third'") } });
    for (const path of ["/v1/models/org%2Fsecond", "/models/org/second", "/v1/models/org%2Fsecond-alias"]) {
      expect(await (await fetch(serving.url + path)).json()).toMatchObject({ id: "org/second" });
    }
  });

  it("echoes the metadata of a whole answer, and the tier that is served", async () => {
    const response = await serving.post({ messages: hello, metadata: { a: "b" }, service_tier: "flex" });
    expect(await response.json()).toMatchObject({ metadata: { a: "b" }, service_tier: "default" });
    expect(response.headers.get("server-timing")).toMatch(/entry;.*tokenize;.*queue;dur=1\.0.*prefill;.*decode;.*total;/);
  });
});
