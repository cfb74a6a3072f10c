import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { editDistance, nearestName } from "./nearest.js";

const words = fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 8 });

test.prop([words, words])("the distance is symmetric, zero only for equal texts, and no larger than the longer text", (a, b) => {
  expect(editDistance(a, b)).toBe(editDistance(b, a));
  expect(editDistance(a, b) === 0).toBe(a === b);
  expect(editDistance(a, b)).toBeLessThanOrEqual(Math.max(a.length, b.length));
  expect(editDistance(a, b)).toBeGreaterThanOrEqual(Math.abs(a.length - b.length));
});

test("a swap of neighbours is one edit", () => {
  expect(editDistance("prot", "port")).toBe(1);
});

test("a name that is too far from all has no nearest one", () => {
  expect(nearestName("Prot", ["host", "port"])).toBe("port");
  expect(nearestName("frobnication", ["host", "port"])).toBeUndefined();
});
