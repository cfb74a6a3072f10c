import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { expect, test } from "vitest";
import { medianOf, quantileOf } from "./statistics.js";
import { formatTable } from "./table.js";

property.prop([fc.array(fc.integer({ min: -1000, max: 1000 }), { minLength: 1 }), fc.nat(100)])(
  "at most the share lies below a quantile and at most the rest above it",
  (samples, percent) => {
    const value = quantileOf(samples, percent / 100);
    const slack = 1e-9;
    expect(samples.filter((sample) => sample < value - slack).length).toBeLessThanOrEqual(Math.ceil((samples.length - 1) * (percent / 100)));
    expect(samples.filter((sample) => sample > value + slack).length).toBeLessThanOrEqual(
      samples.length - 1 - Math.floor((samples.length - 1) * (percent / 100)),
    );
    expect(value).toBeGreaterThanOrEqual(Math.min(...samples));
    expect(value).toBeLessThanOrEqual(Math.max(...samples));
  },
);

test("the median of an even number of samples lies in the middle of the two in the middle", () => {
  expect(medianOf([4, 1, 3, 2])).toBe(2.5);
  expect(medianOf([])).toBeNaN();
});

test("a table's columns line up, the first to the left and the others to the right", () => {
  expect(
    formatTable(
      ["name", "n"],
      [
        ["a", "10"],
        ["long name", "2"],
      ],
    ),
  ).toBe("name        n\n---------  --\na          10\nlong name   2");
});
