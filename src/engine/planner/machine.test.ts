import { describe, expect, test } from "vitest";
import { allowedCores, readMachine, systemAvailableBytes } from "./machine.js";

describe("cores", () => {
  test.each([
    { affinity: 8, quota: undefined, cores: 8 },
    { affinity: 8, quota: 2.5, cores: 2 },
    { affinity: 2, quota: 16, cores: 2 },
    { affinity: 4, quota: 0.5, cores: 1 },
  ])("$affinity by affinity and a quota of $quota are $cores", ({ affinity, quota, cores }) => {
    expect(allowedCores(affinity, quota)).toBe(cores);
  });
});

test("Linux says what memory can be had; elsewhere something is assumed", () => {
  expect(systemAvailableBytes(() => "MemTotal:  100 kB\nMemAvailable:     60 kB\n")).toBe(61_440);
  expect(systemAvailableBytes(() => undefined)).toBeGreaterThan(0);
});

test("this machine has a core and some memory", () => {
  const machine = readMachine();
  expect(machine.cores).toBeGreaterThanOrEqual(1);
  expect(machine.availableBytes).toBeGreaterThan(0);
});
