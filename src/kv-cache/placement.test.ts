import { describe, expect, test } from "vitest";
import type { KvGeometry } from "./geometry.js";
import { createKvCache, type KvCache } from "./kv-cache.js";
import { createKvDraft } from "./kv-draft.js";
import { choosePlacements } from "./placement.js";
import { createTokenBuffer } from "./token-buffer.js";

const unified: KvGeometry = { pageTokens: 4, arenas: [{ pages: 16, slots: [0, 1, 2] }], canTrim: true };
const streams: KvGeometry = { pageTokens: 4, arenas: [0, 1, 2].map((slot) => ({ pages: 8, slots: [slot] })), canTrim: true };

const textOf = (length: number, first = 0) => Int32Array.from({ length }, (_, position) => first + position);

function fill(cache: KvCache, slot: number, tokens: Int32Array, state: "running" | "cached"): void {
  cache.acquire(slot, "");
  cache.append(slot, tokens);
  if (state === "cached") cache.release(slot);
}

function bestFor(cache: KvCache, tokens: Int32Array) {
  return choosePlacements(createKvDraft(cache), { salt: "", tokens: createTokenBuffer(tokens), reuse: true })[0];
}

describe("placement", () => {
  test("an idle slot that the text continues is taken over", () => {
    const cache = createKvCache(unified);
    fill(cache, 1, textOf(10), "cached");
    expect(bestFor(cache, textOf(13))).toEqual({ kind: "takeOver", slot: 1, tokens: 10 });
  });

  test("of an idle slot that holds much more, the common part is shared, so that the rest is kept", () => {
    const cache = createKvCache(unified);
    fill(cache, 1, textOf(20), "cached");
    expect(bestFor(cache, textOf(7))).toEqual({ kind: "share", from: 1, slot: 0, tokens: 6 });
  });

  test("between arenas only a running prefix is worth a copy over another slot's content, and only from two pages up", () => {
    const cache = createKvCache(streams);
    fill(cache, 0, textOf(20), "running");
    fill(cache, 1, textOf(5, 900), "cached");
    fill(cache, 2, textOf(5, 700), "cached");
    expect(bestFor(cache, textOf(9))).toEqual({ kind: "copy", from: 0, slot: 1, tokens: 8 });
    expect(bestFor(cache, textOf(8))).toEqual({ kind: "takeOver", slot: 1, tokens: 0 });
  });

  test("an idle arena is copied into an empty one, and taken over when there is none", () => {
    const cache = createKvCache(streams);
    fill(cache, 0, textOf(20), "cached");
    expect(bestFor(cache, textOf(9))).toEqual({ kind: "copy", from: 0, slot: 1, tokens: 8 });
    fill(cache, 1, textOf(5, 900), "cached");
    fill(cache, 2, textOf(5, 700), "cached");
    expect(bestFor(cache, textOf(9))).toEqual({ kind: "takeOver", slot: 0, tokens: 8 });
  });

  test("a few common tokens are not worth what else a slot holds", () => {
    const cache = createKvCache(streams);
    fill(cache, 0, textOf(20), "cached");
    expect(bestFor(cache, Int32Array.of(0, 1, 2, 900, 901))).toEqual({ kind: "takeOver", slot: 1, tokens: 0 });
    fill(cache, 1, textOf(20, 500), "cached");
    fill(cache, 2, textOf(20, 700), "cached");
    expect(bestFor(cache, Int32Array.of(500, 501, 900, 901))).toEqual({ kind: "takeOver", slot: 0, tokens: 0 });
    expect(bestFor(cache, Int32Array.of(0, 1, 900, 901))).toEqual({ kind: "takeOver", slot: 0, tokens: 2 });
  });

  test("without a match the empty slot comes first, then the one used longest ago", () => {
    const cache = createKvCache(unified);
    fill(cache, 0, textOf(4, 500), "cached");
    fill(cache, 1, textOf(4, 700), "cached");
    expect(bestFor(cache, textOf(9))).toEqual({ kind: "takeOver", slot: 2, tokens: 0 });
    fill(cache, 2, textOf(4, 900), "cached");
    expect(bestFor(cache, textOf(9))).toEqual({ kind: "takeOver", slot: 0, tokens: 0 });
  });

  test("a slot that cannot be trimmed is reused only from its very end", () => {
    const cache = createKvCache({ ...unified, canTrim: false });
    fill(cache, 0, textOf(10), "cached");
    expect(bestFor(cache, textOf(13))).toEqual({ kind: "takeOver", slot: 0, tokens: 10 });
    expect(bestFor(cache, textOf(10))).toEqual({ kind: "takeOver", slot: 1, tokens: 0 });
  });

  test("there is no place when every slot runs", () => {
    const cache = createKvCache({ ...unified, arenas: [{ pages: 4, slots: [0] }] });
    fill(cache, 0, textOf(4), "running");
    expect(bestFor(cache, textOf(4))).toBeUndefined();
  });
});
