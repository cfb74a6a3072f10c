import { expect, test } from "vitest";
import { restartDelayMs } from "./restart-backoff.js";

test("the first start is at once, then the wait doubles from half a second to ten", () => {
  expect([1, 2, 3, 4, 5, 6, 7, 100].map(restartDelayMs)).toEqual([0, 500, 1000, 2000, 4000, 8000, 10_000, 10_000]);
});
