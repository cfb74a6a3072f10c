import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { cutLongRuns, longestRun } from "./long-runs.js";

const limit = 10;

/** Text in which long runs are likely. */
const runnyText = fc.array(fc.constantFrom("a", "é", "漢", "。", "😀", " ", "\n", ".", "7", "\u0301"), { maxLength: 200 }).map((parts) => parts.join(""));

describe("cutting long runs", () => {
  property.prop([runnyText])("loses nothing and adds nothing", (text) => {
    expect(cutLongRuns(text, limit).join("")).toBe(text);
  });

  property.prop([runnyText])("leaves no run longer than the limit", (text) => {
    for (const piece of cutLongRuns(text, limit)) {
      const runs = piece.split(/(?<=[ \t\n\v\f\r])(?=[^ \t\n\v\f\r])/);
      for (const run of runs) expect(run.length).toBeLessThanOrEqual(limit);
    }
  });

  property.prop([runnyText])("never cuts a character in two", (text) => {
    for (const piece of cutLongRuns(text, limit)) expect(piece.isWellFormed()).toBe(true);
  });

  test("ordinary text stays whole, however long", () => {
    const text = "It was a bright cold day in April, and the clocks were striking thirteen.\n".repeat(2_000);
    expect(text.length).toBeGreaterThan(longestRun);
    expect(cutLongRuns(text)).toEqual([text]);
  });

  test("a cut falls at the end of a word where one is near", () => {
    expect(cutLongRuns("我喜欢喝茶。你呢我喜欢喝茶", limit)).toEqual(["我喜欢喝茶", "。你呢我喜欢喝茶"]);
  });
});
