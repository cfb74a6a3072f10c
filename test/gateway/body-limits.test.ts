/** Bodies that would keep everybody waiting are refused before the costly work, each with a reason. */
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { answering, contextTokens } from "./fake-engine.js";
import { hello, type Serving, startServing } from "./serving.js";

let serving: Serving;
beforeAll(async () => {
  serving = await startServing({ server: { bodyLimit: 8 * 1024 * 1024 } });
  serving.engine.onSubmit = answering("ok");
});
afterAll(() => serving.gateway.close(0));

interface Refusal {
  readonly message: string;
  readonly param: string | null;
  readonly code: string;
}

async function refusalOf(fields: object): Promise<Refusal> {
  const response = await serving.post({ messages: hello, ...fields });
  const { error } = (await response.json()) as { readonly error: Refusal };
  expect([response.status, error.code]).toEqual([400, "invalid_request"]);
  return error;
}

const many = (count: number, value: unknown = 1) => Array.from({ length: count }, () => value);
const keys = (count: number, value: unknown = 1) => Object.fromEntries(many(count, value).map((member, index) => [`key${index}`, member]));
const tool = { type: "function", function: { name: "f" } };
const call = { function: { name: "f" } };

describe("counts", () => {
  it.each([
    ["messages", { messages: many(4097, hello[0]) }, "messages"],
    ["parts", { messages: [{ role: "user", content: many(4097, { type: "text", text: "a" }) }] }, "messages[0].content"],
    ["tool calls", { messages: [{ role: "assistant", tool_calls: many(1025, call) }] }, "messages[0].tool_calls"],
    ["tools", { tools: many(129, tool) }, "tools"],
    [
      "allowed tools",
      { tools: [tool], tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: many(129, call) } } },
      "tool_choice.allowed_tools.tools",
    ],
    ["template variables", { chat_template_kwargs: keys(1001) }, "chat_template_kwargs"],
    ["values in template variables", { chat_template_kwargs: { a: many(500), b: keys(500) } }, "chat_template_kwargs"],
    ["metadata", { metadata: keys(129, "v") }, "metadata"],
    ["biases", { logit_bias: keys(10_001) }, "logit_bias"],
    ["bias pairs", { logit_bias: many(10_001, [1, 1]) }, "logit_bias"],
    ["bias texts", { logit_bias: keys(1001) }, "logit_bias"],
    ["characters of bias texts", { logit_bias: [["x".repeat(65_537), 1]] }, "logit_bias"],
    ["characters of a stop string", { stop: ["x".repeat(1001)] }, "stop[0]"],
    ["characters of a lone stop string", { stop: "x".repeat(1001) }, "stop"],
    ["breakers", { dry_sequence_breakers: many(65, "x") }, "dry_sequence_breakers"],
    ["characters of a breaker", { dry_sequence_breakers: ["x".repeat(1001)] }, "dry_sequence_breakers[0]"],
    ["characters of a name", { model: "x".repeat(1025) }, "model"],
  ] as const)("too many %s", async (_what, fields, param) => {
    const error = await refusalOf(fields);
    expect(error.param).toBe(param);
    expect(error.message).toMatch(/ at most \d| 1 to \d/);
  });

  it("takes as many as are allowed", async () => {
    const fields = { tools: [tool], chat_template_kwargs: keys(1000), metadata: keys(128, "v"), logit_bias: keys(1000), stop: many(32, "x".repeat(1000)) };
    expect((await serving.post({ messages: hello, ...fields })).status).toBe(200);
  });

  it("limits all values of a body together, before they are read", async () => {
    for (const fields of [{ never_heard_of: many(33_000) }, { chat_template_kwargs: keys(33_000) }, keys(33_000)]) {
      expect((await refusalOf(fields)).message).toContain("more than 32768 values");
    }
  });
});

describe("only the first fault is looked for", () => {
  it.each([
    [{ messages: many(4000) }, "messages[0]"],
    [{ messages: [hello[0], ...many(4000)] }, "messages[1]"],
    [{ messages: [{ role: "user", content: many(4000) }] }, "messages[0].content[0]"],
    [{ logit_bias: many(10_000, ["a"]) }, "logit_bias[0]"],
    [{ logit_bias: { 1: 1, ...keys(9000, "x") } }, "logit_bias.key0"],
    [
      {
        logit_bias: [
          ["a", 1],
          ["b", 101],
        ],
      },
      "logit_bias[1][1]",
    ],
    [{ logit_bias: [[1.5, 1]] }, "logit_bias[0][0]"],
  ])("in %j", async (fields, param) => {
    expect((await refusalOf(fields)).param).toBe(param);
  });

  it("shortens a key of the client's making", async () => {
    const { message, param } = await refusalOf({ logit_bias: { ["k".repeat(100_000)]: "x" } });
    expect(message.length + (param?.length ?? 0)).toBeLessThan(400);
  });
});

it("gives the engine one bias for each token, the last one", async () => {
  expect(
    (
      await serving.post({
        messages: hello,
        logit_bias: [
          ["AAAA".repeat(1000), 1],
          ["AB", 2],
          [66, false],
          ["B", 3],
          [65, -100],
        ],
      })
    ).status,
  ).toBe(200);
  expect(serving.engine.jobs.at(-1)?.request.sampling.logitBias).toEqual([
    [65, null],
    [66, 3],
  ]);
});

describe("a prompt that can never fit", () => {
  const ask = (content: string) => serving.post({ messages: [{ role: "user", content }] });

  it("is refused without being tokenized when it is long", async () => {
    const tokenize = vi.spyOn(serving.engine.client, "tokenize");
    const response = await ask("abc ".repeat(20_000));
    const { error } = (await response.json()) as { readonly error: Refusal };
    expect(error).toMatchObject({ code: "context_length_exceeded", param: "messages", n_ctx: contextTokens });
    expect(error.message).toMatch(/at least 800\d\d tokens and exceeds the available context size/);
    expect(tokenize).not.toHaveBeenCalled();
    tokenize.mockRestore();
  });

  it("is counted exactly when it is short", async () => {
    const { error } = (await (await ask("abc ".repeat(1000))).json()) as { readonly error: Refusal };
    expect(error.message).toMatch(/has 40\d\d tokens/);
  });
});
