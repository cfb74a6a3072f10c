import { readFileSync } from "node:fs";
import { join } from "node:path";
import { Tokenizer } from "@huggingface/tokenizers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Llama, type LlamaModel, tokenize } from "../../src/engine/llama/index.js";
import { openTinyModel, textOf, tinyModelFolder } from "./harness.js";

let llama: Llama;
let model: LlamaModel;
beforeAll(async () => {
  ({ llama, model } = await openTinyModel());
});
afterAll(() => {
  model.close();
  llama.close();
});

const readJson = (name: string) => JSON.parse(readFileSync(join(tinyModelFolder, name), "utf8")) as object;
const oracle = new Tokenizer(readJson("tokenizer.json"), readJson("tokenizer_config.json"));

async function idsOf(text: string, parseSpecial = false): Promise<number[]> {
  const [ids] = await tokenize(model, [{ text, parseSpecial }], { addSpecial: false });
  return ids as number[];
}

const texts = [
  "",
  " ",
  "   two  spaces   and\ttabs\t\t",
  "line\nbreaks\r\nand\n\n\nmore\n",
  "What's that? It'll be John's; they've said we'd know.",
  "Fünf größere Äpfel, déjà vu, naïve façade",
  "日本語のテキストと中文",
  "Привет, мир! Γειά σου Κόσμε",
  "emoji 👩‍👩‍👧‍👦 🏳️‍🌈 👍🏽 and 😀😀",
  "numbers 1 12 123 1234 3.14159 1,000,000",
  '{"key": [1, 2, {"nested": null}]}',
  "const x = (a, b) => a + b; // code",
  "combining e\u0301 and a\u0308",
  "zero\u200bwidth \u00a0 no-break",
  "x".repeat(5_000),
  "The quick brown fox jumps over the lazy dog. ".repeat(200),
];

describe("tokenizing", () => {
  test.each(texts.map((text) => [text.slice(0, 40), text]))("gives the ids of the reference tokenizer: %j", async (_, text) => {
    expect(await idsOf(text)).toEqual(oracle.encode(text, { add_special_tokens: false }).ids);
  });

  test("knows control tokens only where it is told to", async () => {
    const text = "<|im_start|>user\nHi<|im_end|>";
    const controls = [1, 2];
    expect((await idsOf(text, true)).filter((id) => controls.includes(id))).toEqual([1, 2]);
    expect((await idsOf(text, false)).filter((id) => controls.includes(id))).toEqual([]);
    expect(textOf(model, await idsOf(text, false))).toBe(text);
  });

  test("keeps segments apart and in order", async () => {
    const segments = [
      { text: "<|im_start|>", parseSpecial: true },
      { text: "<|im_start|>", parseSpecial: false },
      { text: "", parseSpecial: false },
    ];
    const [first, second, third] = await tokenize(model, segments, { addSpecial: false });
    expect(first).toEqual([1]);
    expect(second).toEqual(await idsOf("<|im_start|>"));
    expect(third).toEqual([]);
  });

  test("of a megabyte without a space leaves the event loop free and loses nothing", async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    const text = "abcdefghij".repeat(100_000);
    const ids = await idsOf(text);
    clearInterval(timer);
    expect(textOf(model, ids)).toBe(text);
    expect(turns).toBeGreaterThan(0);
  });

  test("several texts at once do not disturb each other", async () => {
    const long = texts.map((text) => text.repeat(50));
    const together = await Promise.all(long.map((text) => idsOf(text)));
    for (const [index, text] of long.entries()) expect(together[index]).toEqual(await idsOf(text));
  });

  test("turns lone surrogates into replacement characters", async () => {
    expect(textOf(model, await idsOf("a\ud800b"))).toBe("a\ufffdb");
  });
});
