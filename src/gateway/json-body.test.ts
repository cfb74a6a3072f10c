import { fc, test } from "@fast-check/vitest";
import { expect, it } from "vitest";
import { maxNesting, parseJsonBody } from "./json-body.js";

test.prop([fc.json({ maxDepth: 20 })])("reads what JSON.parse reads", (text) => {
  expect(parseJsonBody(Buffer.from(text))).toEqual(JSON.parse(text));
});

test.prop([fc.string({ unit: "binary" }), fc.string()])("never lets half a surrogate pair through, in values or keys", (value, key) => {
  // JSON.stringify escapes what is not whole, so it reaches the parser as \u sequences.
  const parsed = parseJsonBody(Buffer.from(JSON.stringify({ [`k${key}\ud800`]: [value, "\udc00"] })));
  expect(JSON.stringify(parsed)).not.toMatch(/\\ud[89a-f]/i);
  expect(Object.keys(parsed as object)[0]).toMatch(/\uFFFD$/);
});

test.prop([fc.string()])("counts brackets outside of strings only", (text) => {
  const body = JSON.stringify([`${'[{"\\'.repeat(maxNesting * 2)}${text}`]);
  expect(parseJsonBody(Buffer.from(body))).toEqual(JSON.parse(body));
});

it("takes nesting up to its limit and no deeper", () => {
  const nested = (depth: number) => Buffer.from("[".repeat(depth) + "]".repeat(depth));
  expect(() => parseJsonBody(nested(maxNesting))).not.toThrow();
  expect(() => parseJsonBody(nested(maxNesting + 1))).toThrow("levels deep");
  expect(() => parseJsonBody(Buffer.from(`"${"\\".repeat(1000)}`))).toThrow("not valid JSON");
});
