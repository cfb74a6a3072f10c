import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { demoTokenizerPath, demoVocabularyInfo, vocabularyInfo } from "./fixtures/demo-vocabulary.js";
import { compareTokenizerFile } from "./tokenizer-alignment.js";
import { createVocabulary } from "./vocabulary.js";

const folder = mkdtempSync(join(tmpdir(), "pagoda-alignment-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(content: unknown): string {
  const path = join(folder, "tokenizer.json");
  writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
  return path;
}

describe("comparing tokenizer.json with a model", () => {
  const vocabulary = createVocabulary(demoVocabularyInfo());

  test("the built-in model's files agree on every token", () => {
    expect(compareTokenizerFile(demoTokenizerPath, vocabulary)).toEqual({ compared: 1024, differing: 0, differences: [] });
  });

  test("a token that was changed, one that moved and one that is missing are reported", () => {
    const file = JSON.parse(readFileSync(demoTokenizerPath, "utf8"));
    const [first, second] = Object.keys(file.model.vocab).slice(300, 302) as [string, string];
    const { [first]: firstId, [second]: secondId } = file.model.vocab;
    Object.assign(file.model.vocab, { [first]: secondId, [second]: firstId, extra: 5000 });
    const report = compareTokenizerFile(fileOf(file), vocabulary);
    expect(report.differing).toBe(3);
    expect(report.differences.map(({ id }) => id).sort()).toEqual([firstId, secondId, 5000].sort());
    expect(report.differences.find(({ id }) => id === 5000)).toEqual({ id: 5000, inFile: "extra", inModel: undefined });
  });

  test("SentencePiece spellings stand for spaces and bytes", () => {
    const model = createVocabulary(vocabularyInfo([Buffer.from(" the"), Uint8Array.of(0xff)], { type: "spm" }));
    expect(compareTokenizerFile(fileOf({ model: { vocab: [["▁the", 0], ["<0xFF>", 0]] } }), model).differing).toBe(0); // biome-ignore format: one line
  });

  test("a file that is no tokenizer is a coded error", () => {
    for (const content of ["{", "[]", "3", { model: {} }])
      expect(() => compareTokenizerFile(fileOf(content), vocabulary)).toThrow(expect.objectContaining({ code: "tokenizer_file_invalid" }));
  });
});
