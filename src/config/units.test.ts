import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { formatDuration, formatSize, parseDuration, parseSize } from "./units.js";

const counts = fc.oneof(
  fc.nat({ max: 2 ** 40 }),
  fc.nat({ max: 5000 }).map((n) => n * 3_600_000),
  fc.nat({ max: 5000 }).map((n) => n * 1024 ** 2),
);

describe("durations and sizes", () => {
  test.prop([counts])("what is written is read back", (count) => {
    expect(parseDuration(formatDuration(count))).toBe(count);
    expect(parseSize(formatSize(count))).toBe(count);
  });

  test.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["1.5m", 90_000],
    ["1h", 3_600_000],
    ["0s", 0],
  ])("the duration %s is %d ms", (text, milliseconds) => expect(parseDuration(text)).toBe(milliseconds));

  test.each([
    ["8MiB", 8 * 1024 ** 2],
    ["10MB", 10_000_000],
    ["0.5KiB", 512],
    ["3 GB", 3_000_000_000],
    ["7B", 7],
  ])("the size %s is %d bytes", (text, bytes) => expect(parseSize(text)).toBe(bytes));

  test.each(["30", "", "s", "-1s", "1d", "1 week", "0.3ms", "1e3s", "99999999999999999h"])("%j is no duration", (text) =>
    expect(parseDuration(text)).toBeUndefined(),
  );
  test.each(["8", "8mib", "MiB", "-8MiB", "0.1KiB", "8Mb"])("%j is no size with a unit", (text) => expect(parseSize(text)).toBeUndefined());

  test("the largest unit that stays whole is used", () => {
    expect([90_000, 7_200_000, 600_000, 0].map(formatDuration)).toEqual(["90s", "2h", "10m", "0ms"]);
    expect([1024, 1000, 1024 ** 3, 5, 1_500_000].map(formatSize)).toEqual(["1KiB", "1KB", "1GiB", "5B", "1500KB"]);
  });
});
