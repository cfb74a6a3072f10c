import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Row } from "../../scheduler/step-plan.js";
import { groupRows } from "./row-groups.js";

const rowOf = (size: number, slot: number): Row => ({ sequence: String(slot), slot, start: 0, tokens: new Int32Array(size), logits: "last" });
const arbitraryRows = fc.array(fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 32 })), { maxLength: 40 }).map((sizes) => sizes.map(rowOf));
const sizeOf = (rows: readonly Row[], group: readonly number[]) => group.reduce((sum, index) => sum + (rows[index]?.tokens.length ?? 0), 0);

describe("groups of rows", () => {
  property.prop([arbitraryRows, fc.boolean()])("hold every chosen row once and fit a batch", (rows, splitCalls) => {
    const chosen = rows.map((_, index) => index).filter((index) => index % 3 !== 1);
    const groups = groupRows(rows, chosen, { splitCalls, batchTokens: 32 });
    expect(groups.flat().sort((a, b) => a - b)).toEqual(chosen);
    for (const group of groups) {
      expect(group.length).toBeGreaterThan(0);
      expect(sizeOf(rows, group)).toBeLessThanOrEqual(32);
    }
  });

  property.prop([arbitraryRows])("never mix single tokens with longer rows when split", (rows) => {
    const chosen = rows.map((_, index) => index);
    for (const group of groupRows(rows, chosen, { splitCalls: true, batchTokens: 32 })) {
      expect(new Set(group.map((index) => rows[index]?.tokens.length === 1)).size).toBe(1);
    }
  });

  property.prop([fc.uniqueArray(fc.nat({ max: 60 }), { maxLength: 30 }), fc.boolean()])(
    "hold their rows in the order of slots, whatever order the plan has",
    (slots, splitCalls) => {
      const rows = slots.map((slot) => rowOf(1 + (slot % 2), slot));
      const slotsOf = (group: readonly number[]) => group.map((index) => rows[index]?.slot ?? -1);
      for (const group of groupRows(rows, [...rows.keys()], { splitCalls, batchTokens: 32 }))
        expect(slotsOf(group)).toEqual(slotsOf(group).sort((a, b) => a - b));
    },
  );

  test("are one when everything fits and calls are not split", () => {
    expect(groupRows([rowOf(1, 0), rowOf(8, 1), rowOf(1, 2)], [0, 1, 2], { splitCalls: false, batchTokens: 32 })).toEqual([[0, 1, 2]]);
  });
});
