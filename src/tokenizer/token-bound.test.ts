import { fc, test } from "@fast-check/vitest";
import { expect, it } from "vitest";
import { vocabularyInfo } from "./fixtures/demo-vocabulary.js";
import { createTokenBound } from "./token-bound.js";
import { createVocabulary, type VocabularyInfo } from "./vocabulary.js";

function boundOf(pieces: readonly string[], { type = "bpe" as VocabularyInfo["type"], rstrip = false } = {}): (text: string) => number {
  const bytes = pieces.map((piece) => Buffer.from(piece));
  const info = vocabularyInfo(bytes, { type, special: [{ id: 0, text: "<x>", lstrip: false, rstrip }] });
  return createTokenBound(createVocabulary(info));
}

const letters = ["a", "b", "c", "d"];

test.prop([fc.array(fc.string({ unit: fc.constantFrom(...letters), minLength: 1, maxLength: 9 }), { minLength: 1 }), fc.array(fc.nat())])(
  "no text has fewer tokens than the bound says, however its tokens are chosen",
  (longer, choices) => {
    const pieces = [...letters, ...longer];
    const tokens = choices.map((choice) => pieces[choice % pieces.length] as string);
    expect(boundOf(pieces)(tokens.join(""))).toBeLessThanOrEqual(tokens.length);
  },
);

it("is exact where every token is as long as it can be, in bytes", () => {
  const bound = boundOf(["a", "b", "aaaa", "bbb", "\u00e9"]);
  expect(bound("a".repeat(4000))).toBe(1000);
  expect(bound("b".repeat(3000) + "a".repeat(4001))).toBe(2001);
});

it("counts nothing that a tokenizer may leave out: bytes that are no token, and white space where a token swallows it", () => {
  const pieces = ["a", "aa", " ", "\n", "  ", "é"];
  const swallowing = boundOf(pieces, { rstrip: true });
  expect(swallowing("  \n ".repeat(100))).toBe(0);
  expect(swallowing("éé".repeat(100))).toBe(0);
  expect(swallowing(" a a")).toBe(1);
  expect(boundOf(pieces)("  \n  ".repeat(100))).toBe(300);
});

it("says nothing of vocabularies that normalise the text", () => {
  for (const type of ["wpm", "ugm", "rwkv", "plamo2", "none", "other"] as const) expect(boundOf(["a"], { type })("aaa")).toBe(0);
  expect(boundOf(["a"], { type: "spm" })("aaa")).toBe(3);
});
