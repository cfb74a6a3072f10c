import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { createDetokenizer, detokenize } from "./detokenizer.js";
import { demoVocabularyInfo, encodePlain, vocabularyInfo } from "./fixtures/demo-vocabulary.js";
import { createVocabulary, type Vocabulary } from "./vocabulary.js";

const reference = new TextDecoder("utf-8", { ignoreBOM: true });

/** Bytes near everything that UTF-8 treats specially. */
const awkwardByte = fc.constantFrom(
  0x00,
  0x20,
  0x41,
  0x7f,
  0x80,
  0x8f,
  0x90,
  0x9f,
  0xa0,
  0xbb,
  0xbf,
  0xc0,
  0xc1,
  0xc2,
  0xdf,
  0xe0,
  0xe2,
  0xed,
  0xef,
  0xf0,
  0xf1,
  0xf4,
  0xf5,
  0xff,
);
const awkwardPiece = fc.oneof(
  fc.uint8Array({ maxLength: 5 }),
  fc.array(awkwardByte, { maxLength: 5 }).map((bytes) => Uint8Array.from(bytes)),
  fc.string({ unit: "binary", maxLength: 3 }).map((text) => Uint8Array.from(Buffer.from(text))),
);

function ofPieces(pieces: readonly Uint8Array[]): Vocabulary {
  return createVocabulary(vocabularyInfo(pieces));
}

describe("a detokenizer", () => {
  test.prop([fc.array(awkwardPiece, { maxLength: 12 })], { numRuns: 2000 })("gives together what a TextDecoder makes of all bytes", (pieces) => {
    const detokenizer = createDetokenizer(ofPieces(pieces));
    const texts = pieces.map((_, id) => detokenizer.push(id));
    expect(texts.join("") + detokenizer.flush()).toBe(reference.decode(Buffer.concat(pieces)));
  });

  test.prop([fc.string({ unit: "binary" })])("emits each character whole, with its last byte, and waits for nothing else", (text) => {
    const bytes = [...Buffer.from(text)].map((byte) => Uint8Array.of(byte));
    const detokenizer = createDetokenizer(ofPieces(bytes));
    const texts = bytes.map((_, id) => detokenizer.push(id)).filter((piece) => piece !== "");
    expect(texts).toEqual([...text]);
    expect(detokenizer.pendingBytes).toBe(0);
    expect(detokenizer.flush()).toBe("");
  });

  test("gives no text for control and end-of-generation tokens", () => {
    const vocabulary = createVocabulary(demoVocabularyInfo());
    const plain = createVocabulary(vocabularyInfo([Buffer.from("end"), Buffer.from("x")], { endOfGeneration: [0] }));
    expect(detokenize(vocabulary, [0, 1, 2])).toBe("");
    expect(detokenize(plain, [1, 0])).toBe("x");
  });

  test.prop([fc.string({ unit: "binary" })])("gives back the text that was tokenized", (text) => {
    expect(detokenize(createVocabulary(demoVocabularyInfo()), encodePlain(text))).toBe(text);
  });

  test("drops the space that the tokenizer put before a text, but never one inside an answer", () => {
    const vocabulary = createVocabulary(vocabularyInfo([Buffer.from(" a"), Buffer.from("  b")], { addSpacePrefix: true }));
    expect(detokenize(vocabulary, [0, 0])).toBe("a a");
    expect(detokenize(vocabulary, [1])).toBe(" b");
    const answer = createDetokenizer(vocabulary);
    expect(answer.push(0)).toBe(" a");
  });

  test("gives nothing for an id outside the vocabulary", () => {
    expect(detokenize(ofPieces([Buffer.from("x")]), [7, -1, 0])).toBe("x");
  });
});
