import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import type { EngineSettings } from "../protocol.js";
import { type GpuMemory, type ModelFacts, planEngine } from "./plan-engine.js";

const gibibyte = 2 ** 30;
const machine = { cores: 8, availableBytes: 16 * gibibyte };
const model: ModelFacts = { trainedContextTokens: 2048, kvBytesPerToken: 23_040, weightBytes: gibibyte / 8, layers: 30, canTrim: true };

function settings(changes: Partial<EngineSettings> = {}): EngineSettings {
  return {
    modelPath: "model.gguf",
    backend: "auto",
    libraries: "bundled",
    threads: "auto",
    gpuLayers: "auto",
    flashAttention: "auto",
    kvLayout: "auto",
    kvTokens: "auto",
    kvPageTokens: 32,
    kvType: "f16",
    maxSequences: "auto",
    maxBatchTokens: 512,
    maxQueuedRequests: 256,
    maxQueuedTokens: "auto",
    sharePrefixes: true,
    ...changes,
  };
}

function plan(changes: Partial<EngineSettings> = {}, facts: Partial<ModelFacts> = {}, gpu?: GpuMemory) {
  return planEngine(settings(changes), { ...model, ...facts }, machine, gpu);
}

describe("on a CPU", () => {
  test("a cache for every sequence's whole context fits: each gets a stream of its own", () => {
    expect(plan()).toEqual({ threads: 8, gpuLayers: 0, maxSequences: 16, kvLayout: "streams", kvTokens: 16 * 2048, slots: 16 });
  });

  test("it does not fit: all share one pool, and finished sequences have slots beside the running ones", () => {
    const planned = plan({}, { trainedContextTokens: 131_072 });
    expect(planned).toMatchObject({ kvLayout: "unified", slots: 32 });
    expect(planned.kvTokens * model.kvBytesPerToken).toBeLessThan(machine.availableBytes / 2);
    expect(planned.kvTokens * model.kvBytesPerToken).toBeGreaterThan(machine.availableBytes / 3);
  });

  test("an explicit size decides the layout as well", () => {
    expect(plan({ kvTokens: 16 * 2048 }).kvLayout).toBe("streams");
    expect(plan({ kvTokens: 16 * 2048 - 1 }).kvLayout).toBe("unified");
    expect(plan({ kvTokens: 1000, kvLayout: "streams", maxSequences: 2 }).kvTokens).toBe(1024);
  });

  test("a model that cannot trim gets no slots beyond its running sequences, and one without attention no less context for lack of memory", () => {
    expect(plan({ kvLayout: "unified" }, { canTrim: false }).slots).toBe(16);
    expect(planEngine(settings(), { ...model, kvBytesPerToken: 0 }, { cores: 1, availableBytes: 0 }, undefined).kvTokens).toBe(16 * 2048);
  });
});

describe("on a GPU", () => {
  test("everything goes there when it fits, in one pool", () => {
    expect(plan({}, {}, { freeBytes: 24 * gibibyte })).toMatchObject({ gpuLayers: 31, kvLayout: "unified", kvTokens: 16 * 2048 });
  });
  test("as many layers as fit go there otherwise", () => {
    const { gpuLayers } = plan({}, { weightBytes: 8 * gibibyte }, { freeBytes: 4 * gibibyte });
    expect(gpuLayers).toBeGreaterThan(5);
    expect(gpuLayers).toBeLessThan(20);
  });
  test("a number is taken as it is, up to all", () => {
    expect(plan({ gpuLayers: 7 }, {}, { freeBytes: 24 * gibibyte }).gpuLayers).toBe(7);
    expect(plan({ gpuLayers: 99 }, {}, { freeBytes: 24 * gibibyte }).gpuLayers).toBe(31);
  });
});

describe("what cannot be is refused with the numbers", () => {
  test("a cache larger than the memory", () => {
    expect(() => plan({ kvTokens: 1_000_000 })).toThrow(
      /kv\.tokens is 1000000.*1003520 tokens needs \d+ MiB \(23040 bytes a token as f16\).*only 16384 MiB.*at most 745472 tokens fit/,
    );
  });
  test("a machine without room for the smallest cache", () => {
    expect(() => planEngine(settings(), model, { cores: 1, availableBytes: 1_000_000 }, undefined)).toThrow(/smallest KV cache/);
  });
  test("more sequences than tokens in a step", () => {
    expect(() => plan({ maxSequences: 64, maxBatchTokens: 32 })).toThrow(/scheduler\.maxSequences is 64.*32/);
    expect(plan({ maxBatchTokens: 8 }).maxSequences).toBe(8);
  });
});

test("a small model gets only the threads that have something to do", () => {
  const threads = (weightBytes: number) => plan({}, { weightBytes }).threads;
  expect([threads(2 ** 20), threads(20 * 2 ** 20), threads(gibibyte)]).toEqual([1, 2, 8]);
  expect(plan({ threads: 3 }, { weightBytes: 2 ** 20 }).threads).toBe(3);
});

test("more threads than the cores can bear are refused with the numbers", () => {
  expect(plan({ threads: 32 }).threads).toBe(32);
  expect(() => plan({ threads: 33 })).toThrow(/engine\.threads is 33, .* 8 cores .* at most 32 threads/);
});

test("a share of the machine is a share of its cores and memory", () => {
  const whole = plan({}, { trainedContextTokens: 131_072 });
  const half = plan({ machineShare: 0.5 }, { trainedContextTokens: 131_072 });
  expect(half.threads).toBe(4);
  expect(half.kvTokens).toBeLessThanOrEqual(whole.kvTokens / 2 + 256);
  expect(plan({ machineShare: 0.01 }).threads).toBe(1);
});

const arbitrarySettings = fc.record({
  kvTokens: fc.oneof(fc.constant("auto" as const), fc.integer({ min: 1, max: 200_000 })),
  kvLayout: fc.constantFrom("auto" as const, "streams" as const, "unified" as const),
  maxSequences: fc.oneof(fc.constant("auto" as const), fc.integer({ min: 1, max: 256 })),
  machineShare: fc.double({ min: 0.1, max: 1, noNaN: true }),
});
const arbitraryModel = fc.record({
  trainedContextTokens: fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 200_000 })),
  kvBytesPerToken: fc.integer({ min: 0, max: 10_000 }),
  weightBytes: fc.integer({ min: 0, max: 4 * gibibyte }),
  layers: fc.integer({ min: 1, max: 100 }),
  canTrim: fc.boolean(),
});

test.prop([arbitrarySettings, arbitraryModel])("llama.cpp takes every plan as it is, and a plan made explicit is the same plan", (changes, facts) => {
  const planned = planEngine(settings(changes), facts, machine, undefined);
  const streams = planned.kvLayout === "streams" ? planned.maxSequences : 1;
  expect(planned.kvTokens % (256 * streams)).toBe(0);
  expect(planned.kvTokens).toBeGreaterThan(0);
  expect(planned.slots).toBeGreaterThanOrEqual(planned.maxSequences);
  expect(planned.slots).toBeLessThanOrEqual(256);
  if (changes.kvTokens !== "auto") expect(planned.kvTokens).toBeGreaterThanOrEqual(changes.kvTokens);
  const { threads, kvLayout, kvTokens, maxSequences } = planned;
  expect(planEngine(settings({ ...changes, threads, kvLayout, kvTokens, maxSequences }), facts, machine, undefined)).toEqual(planned);
});
