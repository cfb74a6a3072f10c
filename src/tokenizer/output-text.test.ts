import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { vocabularyInfo } from "./fixtures/demo-vocabulary.js";
import { createOutputText } from "./output-text.js";
import { createVocabulary } from "./vocabulary.js";

// Whole characters, halves of 🙂, and a token without text.
const pieces = ["a", "b", "ab", "bc", "c\n"].map((text) => Buffer.from(text));
const smile = Buffer.from("🙂");
const vocabulary = createVocabulary(vocabularyInfo([...pieces, smile.subarray(0, 2), smile.subarray(2), Buffer.alloc(0)]));
const [a, b, ab, bc, head, tail, empty] = [0, 1, 2, 3, 5, 6, 7];
const stopString = fc.string({ unit: fc.constantFrom("a", "b", "c", "\n", "🙂"), maxLength: 4 });

function decode(tokens: readonly number[], isOver: boolean): string {
  return new TextDecoder().decode(Buffer.concat(tokens.map((token) => vocabulary.piece(token))), { stream: !isOver });
}

function run(tokens: readonly number[], stop: readonly string[]) {
  const output = createOutputText({ vocabulary, stop });
  return [...tokens.map((token) => output.push(token)), output.finish()];
}

describe("output text", () => {
  test.prop([fc.array(fc.nat(vocabulary.size - 1), { maxLength: 12 }), fc.array(stopString, { maxLength: 3 })], { numRuns: 2000 })(
    "is the decoded text before the first stop string; the reported tokens are those with text in it",
    (tokens, stop) => {
      const chunks = run(tokens, stop);
      const whole = decode(tokens, true);
      const starts = stop.filter((text) => text !== "" && whole.includes(text)).map((text) => whole.indexOf(text));
      const expected = starts.length === 0 ? whole : whole.slice(0, Math.min(...starts));
      expect(chunks.map(({ text }) => text).join("")).toBe(expected);

      const reported = chunks.reduce((sum, chunk) => sum + chunk.tokens, 0);
      const textOf = (count: number, isOver: boolean) => decode(tokens.slice(0, count), isOver);
      expect(textOf(reported, true).length).toBeGreaterThanOrEqual(expected.length);
      if (starts.length === 0) expect(reported).toBe(tokens.length);
      // Without the last token that has bytes, a part of the text would be missing.
      const last = tokens.slice(0, reported).findLastIndex((token) => vocabulary.piece(token).length > 0);
      if (starts.length > 0 && last >= 0) expect(textOf(last, false).length).toBeLessThan(expected.length);
    },
  );

  test("a token is reported only when all its text is out", () => {
    expect(run([a, b, a], ["bc"]).map(({ text, tokens }) => [text, tokens])).toEqual([["a", 1], ["", 0], ["ba", 2], ["", 0]]); // biome-ignore format: one line
    expect(run([head, tail], []).map(({ text, tokens }) => [text, tokens])).toEqual([["", 0], ["🙂", 2], ["", 0]]); // biome-ignore format: one line
    expect(run([head], []).map(({ text, tokens }) => [text, tokens])).toEqual([["", 0], ["\ufffd", 1]]); // biome-ignore format: one line
    expect(run([empty], []).map(({ text, tokens }) => [text, tokens])).toEqual([["", 1], ["", 0]]); // biome-ignore format: one line
  });

  test("a token that reaches into the stop string is reported, one that lies in it is not", () => {
    const chunks = run([ab, bc, a], ["bbc"]);
    expect(chunks.slice(0, 2)).toEqual([
      { text: "a", stopped: false, tokens: 0 },
      { text: "", stopped: true, tokens: 1 },
    ]);
    expect(chunks.slice(2).every(({ tokens, text, stopped }) => tokens === 0 && text === "" && stopped)).toBe(true);
  });
});
