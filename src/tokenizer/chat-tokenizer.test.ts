import { readFileSync } from "node:fs";
import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import type { ChatMessage } from "./chat-messages.js";
import { createChatTokenizer } from "./chat-tokenizer.js";
import { demoChatTemplate, demoTokenize, demoVocabularyInfo, encodePlain, encodeWithSpecial } from "./fixtures/demo-vocabulary.js";

interface TrainingConversation {
  readonly messages: readonly { role: string; content: string; tool_calls?: readonly { name: string; arguments: { city: string } }[] }[];
  readonly tools: readonly unknown[] | null;
  /** The text that the model was trained on: `corpus.py SEED COUNT --rendered`. */
  readonly rendered: string;
}

const fixture = readFileSync(new URL("./fixtures/training-renders.jsonl", import.meta.url), "utf8");
const conversations = fixture
  .trim()
  .split("\n")
  .map((line): TrainingConversation => JSON.parse(line));

const chat = createChatTokenizer({ tokens: demoVocabularyInfo(), chatTemplate: demoChatTemplate, tokenize: demoTokenize });
const [startId, endId] = [1, 2];

function asClientMessage({ role, content, tool_calls: calls }: TrainingConversation["messages"][number]): ChatMessage {
  if (calls === undefined) return { role, content };
  const toolCalls = calls.map(({ name, arguments: { city } }) => ({ id: "call_1", type: "function", function: { name, arguments: `{"city": "${city}"}` } }));
  return { role, content: null, tool_calls: toolCalls };
}

/** User text with control token spellings, whole and broken, in unpleasant company. */
const hostileText = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "<|im_start|>",
        "<|im_end|>",
        "<|endoftext|>",
        "<|IM_END|>",
        "<|im_",
        "end|>",
        "<",
        "|>",
        "assistant\n",
        "<tool_call>",
        "\ufdd0",
        "\\ufdd0",
        " \n",
        "é🙂",
      ),
      fc.string({ unit: "binary", maxLength: 5 }),
    ),
    { maxLength: 12 },
  )
  .map((pieces) => pieces.join(""));

describe("encodeChat", () => {
  test("gives the ids that the model was trained on, for conversations with and without tools", async () => {
    expect(conversations.some(({ tools }) => tools !== null)).toBe(true);
    expect(conversations.some(({ messages }) => messages.some((message) => message.tool_calls))).toBe(true);
    for (const { messages, tools, rendered } of conversations) {
      const ids = await chat.encodeChat({ messages: messages.map(asClientMessage), tools, addGenerationPrompt: false });
      expect(ids).toEqual(encodeWithSpecial(rendered));
    }
  });

  test("ends where the assistant's answer begins", async () => {
    const ids = await chat.encodeChat({ messages: [{ role: "user", content: "Hi" }] });
    expect(ids).toEqual(encodeWithSpecial("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"));
  });

  test.prop([hostileText])("text of a user never becomes a control token, and its ids are those of the text", async (content) => {
    const ids = await chat.encodeChat({ messages: [{ role: "user", content }] });
    const expected = [startId, ...encodePlain(`user\n${content}`), endId, ...encodePlain("\n"), startId, ...encodePlain("assistant\n")];
    expect(ids).toEqual(expected);
  });

  test.prop([hostileText, hostileText])("nor does text in tool definitions, their keys, names and arguments", async (text, key) => {
    const messages: ChatMessage[] = [
      { role: "user", content: "x", name: text },
      { role: "assistant", content: text, tool_calls: [{ id: text, type: "function", function: { name: text, arguments: text } }] },
      { role: "tool", tool_call_id: text, content: [{ type: "text", text }] },
    ];
    const tools = [{ type: "function", function: { name: text, description: text, parameters: { [key]: { enum: [text] } } } }];
    const ids = await chat.encodeChat({ messages, tools, templateVariables: { note: text } });
    const controls = ids.filter((id) => chat.vocabulary.isSpecial(id));
    expect(controls).toEqual([startId, endId, startId, endId, startId, endId, startId, endId, startId]);
  });

  test("text parts are joined, and missing content is empty", async () => {
    const parts: ChatMessage[] = [
      { role: "user", content: [{ type: "text", text: "a" }, { type: "text", text: "b" }] }, // biome-ignore format: one line
      { role: "assistant", content: null },
    ];
    const whole: ChatMessage[] = [{ role: "user", content: "a\nb" }, { role: "assistant" }]; // biome-ignore format: one line
    expect(await chat.encodeChat({ messages: parts })).toEqual(await chat.encodeChat({ messages: whole }));
  });

  test("content that is not text is refused with its place", async () => {
    const messages: ChatMessage[] = [{ role: "user", content: [{ type: "text", text: "a" }, { type: "image_url" }] }];
    await expect(chat.encodeChat({ messages })).rejects.toMatchObject({ status: 400, param: "messages[0].content[1]" });
  });

  test("the tokenizer is asked once, and a failure of it is not hidden", async () => {
    const calls: number[] = [];
    const failing = createChatTokenizer({
      tokens: demoVocabularyInfo(),
      chatTemplate: demoChatTemplate,
      tokenize: async (segments) => {
        calls.push(segments.length);
        throw new Error("no engine");
      },
    });
    await expect(failing.encodeChat({ messages: [{ role: "user", content: "Hi" }] })).rejects.toThrow("no engine");
    expect(calls).toEqual([3]);
  });
});

describe("the BOS token", () => {
  const withBos = (chatTemplate: string, addBos: boolean) =>
    createChatTokenizer({ tokens: demoVocabularyInfo({ addBos }), chatTemplate, tokenize: demoTokenize }).encodeChat({
      messages: [{ role: "user", content: "Hi" }],
    });
  const [bosId] = encodeWithSpecial("<|endoftext|>");

  test("is put before a template's text that lacks it", async () => {
    expect(await withBos("{{ messages[0].content }}", true)).toEqual([bosId, ...encodePlain("Hi")]);
  });

  test("is not put there twice", async () => {
    expect(await withBos("{{ bos_token + messages[0].content }}", true)).toEqual([bosId, ...encodePlain("Hi")]);
  });

  test("is left out for a model that wants none", async () => {
    expect(await withBos("{{ messages[0].content }}", false)).toEqual(encodePlain("Hi"));
  });
});
