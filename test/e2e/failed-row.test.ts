/** A request whose every token is banned fails after its prompt was computed. What the engine then holds must not reach anybody else's answer. */
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Server, startServer } from "./server.js";

const layouts = [["kv.layout=streams"], ["kv.layout=unified", "scheduler.maxSequences=8"]];

describe.each(layouts)("%s", (...settings) => {
  let server: Server;
  let client: OpenAI;

  beforeAll(async () => {
    server = await startServer(...settings);
    client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 });
  });
  afterAll(() => server.stop());

  const everyToken = Array.from({ length: 2000 }, (_, id) => [id, false]);

  async function failing(content: string): Promise<string> {
    const response = await server.post({ messages: [{ role: "user", content }], logit_bias: everyToken, cache_prompt: false });
    const { error } = (await response.json()) as { error: { code: string } };
    return error.code;
  }

  async function answer(content: string): Promise<string | null | undefined> {
    const completion = await client.chat.completions.create({ model: "pagoda-tiny", messages: [{ role: "user", content }], temperature: 0 });
    return completion.choices[0]?.message.content;
  }

  test("a request that fails after its prompt leaves nothing behind", async () => {
    const questions = ["What is the capital of France?", "What is 7 + 5?", "Hello!"];
    const before = [];
    for (const question of questions) before.push(await answer(question));
    for (let round = 0; round < 4; round++) {
      const codes = await Promise.all(Array.from({ length: 8 }, (_, index) => failing(`My secret number is ${round * 8 + index}. What is 1 + 1?`)));
      expect(new Set(codes)).toEqual(new Set(["no_token_left"]));
      const after = await Promise.all(questions.map(answer));
      expect(after).toEqual(before);
    }
    expect(server.engines()).toHaveLength(1);
  });
});
