import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { type EngineFigures, growthBetween } from "./engine-figures.js";

const nothing: EngineFigures = {
  ...{ pagesTotal: 0, pagesUsed: 0, pagesCached: 0, decodeRows: 0, prefillTokens: 0 },
  ...{ steps: 0, preemptions: 0, prefixQueryTokens: 0, prefixHitTokens: 0 },
};

/** What one replica counts in each interval between two readings, and whether its process is replaced in it. */
const life = fc.array(fc.record({ queries: fc.nat(100), isReplaced: fc.boolean() }), { maxLength: 12 });

test.prop([life])("a replica's count goes on over its replacements, and nothing that was read is lost", (intervals) => {
  let total = 0;
  let now = { ...nothing, steps: 100 };
  for (const { queries, isReplaced } of intervals) {
    const before = now;
    // A new process is told by its steps: it has made fewer than the one before it.
    now = isReplaced
      ? { ...nothing, steps: before.steps - 1, prefixQueryTokens: queries }
      : { ...before, prefixQueryTokens: before.prefixQueryTokens + queries };
    total += growthBetween([before], [now]).prefixQueryTokens;
  }
  expect(total).toBe(intervals.reduce((sum, { queries }) => sum + queries, 0));
});

test("a replica that is away and one that is new are told apart, in any order", () => {
  const old = { ...nothing, steps: 1000, prefixQueryTokens: 500 };
  const other = { ...nothing, steps: 400, prefixQueryTokens: 90 };
  const grown = { ...nothing, steps: 1010, prefixQueryTokens: 510 };
  const fresh = { ...nothing, steps: 3, prefixQueryTokens: 8 };
  expect(growthBetween([other, old], [grown]).prefixQueryTokens).toBe(10);
  expect(growthBetween([old, other], [fresh, grown]).prefixQueryTokens).toBe(18);
  expect(growthBetween([], [old]).prefixQueryTokens).toBe(500);
});
