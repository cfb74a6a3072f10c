import { once } from "node:events";
import { PassThrough } from "node:stream";
import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { createOutputLines } from "./output-lines.js";

test.prop([fc.array(fc.stringMatching(/^[ab\n]*$/), { maxLength: 10 })])("whatever the pieces are, the lines are those of the whole text", async (pieces) => {
  const seen: string[] = [];
  const lines = createOutputLines(3, (line) => seen.push(line));
  const stream = new PassThrough();
  lines.watch(stream);
  for (const piece of pieces) stream.write(piece);
  stream.end();
  await once(stream, "close");
  const expected = pieces
    .join("")
    .split("\n")
    .filter((line) => line !== "");
  expect(seen).toEqual(expected);
  expect(lines.last).toEqual(expected.slice(-3));
});

test("output without line ends is cut and does not pile up", async () => {
  const seen: string[] = [];
  const lines = createOutputLines(3, (line) => seen.push(line));
  const stream = new PassThrough();
  lines.watch(stream);
  for (let index = 0; index < 100; index++) stream.write("x".repeat(1000));
  stream.end();
  await once(stream, "close");
  expect(seen.length).toBeGreaterThan(10);
  expect(Math.max(...seen.map((line) => line.length))).toBeLessThanOrEqual(2000);
});
