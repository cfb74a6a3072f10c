import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { createSpecialSplitter, type PromptPart } from "./special-split.js";
import type { SpecialToken } from "./vocabulary.js";

const unit = fc.constantFrom("<", ">", "a", "b", " ", "\n", "é");
// Spellings without white space: one that another token's stripping eats is left undefined.
const spelling = fc.string({ unit: fc.constantFrom("<", ">", "a", "b", "é"), minLength: 1, maxLength: 4 });
const specialTokens = fc
  .uniqueArray(fc.record({ text: spelling, lstrip: fc.boolean(), rstrip: fc.boolean() }), { maxLength: 5, selector: ({ text }) => text })
  .map((tokens): SpecialToken[] => tokens.map((token, id) => ({ id, ...token })));

/** The plain way: each token in turn, longest first, splits every piece of text that is left. */
function splitOneByOne(text: string, special: readonly SpecialToken[]): PromptPart[] {
  const ordered = [...special].sort((a, b) => Buffer.byteLength(b.text) - Buffer.byteLength(a.text));
  let parts: PromptPart[] = [{ kind: "text", text }];
  for (const token of ordered) parts = parts.flatMap((part) => (part.kind === "text" ? splitAt(part.text, token) : [part]));
  return parts.filter((part) => part.kind === "token" || part.text !== "");
}

function splitAt(text: string, token: SpecialToken): PromptPart[] {
  const at = text.indexOf(token.text);
  if (at < 0) return [{ kind: "text", text }];
  const left = text.slice(0, at);
  const right = text.slice(at + token.text.length);
  const rest = splitAt(token.rstrip ? right.replace(/^[ \t\n\v\f\r]+/, "") : right, token);
  return [{ kind: "text", text: token.lstrip ? left.replace(/[ \t\n\v\f\r]+$/, "") : left }, { kind: "token", id: token.id }, ...rest];
}

describe("splitting at control tokens", () => {
  test.prop([fc.string({ unit, maxLength: 30 }), specialTokens], { numRuns: 3000 })(
    "is the same as taking one token after the other, the longest first",
    (text, special) => {
      expect(createSpecialSplitter(special)(text)).toEqual(splitOneByOne(text, special));
    },
  );

  test("prefers a longer spelling to one that starts earlier", () => {
    const special = ["ab", "bcd"].map((text, id) => ({ id, text, lstrip: false, rstrip: false }));
    expect(createSpecialSplitter(special)("abcd")).toEqual([
      { kind: "text", text: "a" },
      { kind: "token", id: 1 },
    ]);
  });
});
