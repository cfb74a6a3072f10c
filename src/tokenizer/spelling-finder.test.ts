import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { createSpellingFinder } from "./spelling-finder.js";

const words = (maxLength: number) => fc.string({ unit: fc.constantFrom("<", "|", "a", "é", "👋"), maxLength });

test.prop([fc.array(words(5), { maxLength: 8 }), words(40)])("visits every occurrence of every spelling, in order", (spellings, text) => {
  const found: string[] = [];
  const starts: number[] = [];
  createSpellingFinder(spellings)(text, (start, spelling) => {
    found.push(`${start} ${spelling}`);
    starts.push(start);
  });
  const wanted = [...new Set(spellings)].filter((spelling) => spelling !== "");
  const expected = Array.from({ length: text.length }, (_, start) =>
    wanted.filter((spelling) => text.startsWith(spelling, start)).map((spelling) => `${start} ${spelling}`),
  );
  expect(found.sort()).toEqual(expected.flat().sort());
  expect(starts).toEqual([...starts].sort((a, b) => a - b));
});
