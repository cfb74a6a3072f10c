import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { computableTemperature } from "./temperature.js";

test.prop([fc.double({ min: 0, max: 9e-6, noNaN: true })])("a temperature next to nothing is 0", (temperature) => {
  expect(computableTemperature({ temperature, topK: 3 })).toEqual({ temperature: 0, topK: 3 });
});

test.prop([fc.double({ min: 1e-5, max: 2, noNaN: true }), fc.double({ min: 0, max: 100, noNaN: true })])(
  "a dynamic temperature keeps its ends, but the lower one is never next to nothing, in 32 bits as well",
  (temperature, range) => {
    const result = computableTemperature({ temperature, dynamicTemperature: { range, exponent: 1 } });
    const { range: newRange = 0, exponent } = result.dynamicTemperature ?? {};
    expect(exponent).toBe(1);
    expect(result.temperature + newRange).toBeCloseTo(temperature + range, 9);
    expect(result.temperature - newRange).toBeCloseTo(Math.max(1e-5, temperature - range), 9);
    expect(Math.fround(result.temperature) - Math.fround(newRange)).toBeGreaterThan(1e-6);
  },
);

test("one that is large enough is left alone", () => {
  const sampling = { temperature: 1e-5, dynamicTemperature: { range: 0, exponent: 1 } };
  expect(computableTemperature(sampling)).toBe(sampling);
});
