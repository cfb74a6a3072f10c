import { describe, expect, test } from "vitest";
import { createScheduler } from "../../scheduler/scheduler.js";
import type { EngineSettings } from "../protocol.js";
import type { EnginePlan } from "./plan-engine.js";
import { schedulerOptions } from "./scheduler-options.js";

const settings = { kvPageTokens: 32, maxBatchTokens: 512, maxQueuedRequests: 256, maxQueuedTokens: "auto", sharePrefixes: true } as EngineSettings;
const plan: EnginePlan = { threads: 1, gpuLayers: 0, kvLayout: "streams", kvTokens: 1024, maxSequences: 4, slots: 4 };

describe("what the scheduler is told", () => {
  test("in the streams layout: an arena with one slot for each sequence", () => {
    const options = schedulerOptions(settings, plan, { contextTokens: 1024, streamTokens: 256, batchTokens: 512, trainedContextTokens: 2048, canTrim: true });
    expect(options.kv.arenas).toEqual([0, 1, 2, 3].map((slot) => ({ pages: 8, slots: [slot] })));
    expect(options.contextTokens).toBe(256);
    expect(() => createScheduler(options)).not.toThrow();
  });

  test("in the unified layout: one arena with all slots, and no more context than the model was trained with", () => {
    const unified: EnginePlan = { ...plan, kvLayout: "unified", slots: 8 };
    const options = schedulerOptions(settings, unified, {
      contextTokens: 4096,
      streamTokens: 4096,
      batchTokens: 512,
      trainedContextTokens: 2048,
      canTrim: false,
    });
    expect(options.kv).toEqual({ pageTokens: 32, canTrim: false, arenas: [{ pages: 128, slots: [0, 1, 2, 3, 4, 5, 6, 7] }] });
    expect(options.contextTokens).toBe(2048);
    expect(() => createScheduler(options)).not.toThrow();
  });

  test("pages that do not fill up the arena leave the rest unused", () => {
    const options = schedulerOptions({ ...settings, kvPageTokens: 100 }, plan, {
      contextTokens: 1024,
      streamTokens: 256,
      batchTokens: 512,
      trainedContextTokens: 2048,
      canTrim: true,
    });
    expect(options.kv.arenas[0]?.pages).toBe(2);
    expect(options.contextTokens).toBe(200);
  });

  test("a page larger than an arena is refused with the numbers", () => {
    const actual = { contextTokens: 1024, streamTokens: 256, batchTokens: 512, trainedContextTokens: 2048, canTrim: true };
    expect(() => schedulerOptions({ ...settings, kvPageTokens: 512 }, plan, actual)).toThrow(/kv\.pageTokens is 512.*256/);
  });
});
