import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { createPrefixTree, hashTokens } from "./prefix-tree.js";
import { createTokenBuffer, type TokenBuffer } from "./token-buffer.js";

const pageTokens = 2;

function treeWith(contents: ReadonlyMap<number, readonly number[]>, salts: ReadonlyMap<number, string> = new Map()) {
  const buffers = new Map(Array.from(contents, ([slot, tokens]) => [slot, createTokenBuffer(Int32Array.from(tokens))]));
  const tree = createPrefixTree(pageTokens, (slot) => buffers.get(slot) as TokenBuffer);
  for (const [slot, tokens] of contents) {
    tree.enter(slot, salts.get(slot) ?? "");
    for (let page = 0; page < Math.floor(tokens.length / pageTokens); page++) tree.addPage(slot, buffers.get(slot) as TokenBuffer);
  }
  return { tree, buffers };
}

const bufferOf = (tokens: readonly number[]) => createTokenBuffer(Int32Array.from(tokens));

function commonPrefix(a: readonly number[], b: readonly number[]): number {
  const difference = a.findIndex((token, position) => token !== b[position]);
  return difference < 0 ? a.length : difference;
}

const text = fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 9 });

describe("match", () => {
  test.prop([fc.array(text, { maxLength: 6 }), text, fc.nat({ max: 9 })])(
    "finds for every slot exactly what it has in common with the tokens",
    (contents, wanted, limit) => {
      const { tree } = treeWith(new Map(contents.map((tokens, slot) => [slot, tokens])));
      const expected = contents.map((tokens, slot) => [slot, Math.min(commonPrefix(tokens, wanted), limit)] as const).filter(([, common]) => common > 0);
      expect(new Map(tree.match("", bufferOf(wanted), limit))).toEqual(new Map(expected));
    },
  );

  test("slots of another trust group are not seen", () => {
    const { tree } = treeWith(
      new Map([
        [0, [1, 2, 3]],
        [1, [1, 2, 3]],
      ]),
      new Map([[1, "other"]]),
    );
    expect([...tree.match("other", bufferOf([1, 2, 3]), 9)]).toEqual([[1, 3]]);
    expect([...tree.match("nobody", bufferOf([1, 2, 3]), 9)]).toEqual([]);
  });

  test("pages with the same hash are told apart by their tokens", () => {
    const [first, second] = collidingPages();
    const { tree } = treeWith(new Map([[0, [...first]]]));
    expect(hashTokens(first)).toBe(hashTokens(second));
    expect(tree.match("", bufferOf([...second]), 9).get(0) ?? 0).toBeLessThan(pageTokens);
  });
});

test.prop([fc.array(text, { maxLength: 6 })])("a tree whose slots are all trimmed has no nodes", (contents) => {
  const { tree } = treeWith(new Map(contents.map((tokens, slot) => [slot, tokens])));
  for (let slot = 0; slot < contents.length; slot++) tree.trim(slot, 0);
  expect(tree.size).toBe(0);
});

/** Two pages of different tokens with one hash: any first tokens (a, c) do, if the second tokens make up for the difference. */
function collidingPages(): [Int32Array, Int32Array] {
  const prime = 0x01000193;
  const afterFirst = (token: number) => Math.imul(0x811c9dc5 ^ token, prime);
  const difference = afterFirst(1) ^ afterFirst(2);
  return [Int32Array.of(1, 0), Int32Array.of(2, difference)];
}
