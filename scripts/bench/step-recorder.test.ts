import { describe, expect, test } from "vitest";
import { createSimulatedExecutor } from "../../src/engine/simulated/simulated-executor.js";
import { createScheduler } from "../../src/scheduler/scheduler.js";
import { recordSteps } from "./step-recorder.js";

const kv = { pageTokens: 4, canTrim: true, arenas: [{ pages: 32, slots: [0, 1] }] };
const options = { maxSequences: 2, maxBatchTokens: 8, maxQueuedRequests: 8, maxQueuedTokens: 1000, contextTokens: 64, sharePrefixes: true, kv };

describe("the step recorder", () => {
  test("notes every step once, with its rows, its tokens and the native time spent in it, and joins them without a gap", async () => {
    let nativeMs = 0;
    const beforeRows = (): void => {
      nativeMs += 5;
    };
    const executor = createSimulatedExecutor({ kv, model: { vocabularySize: 50, endOneIn: 0 }, beforeRows });
    const recorder = recordSteps(createScheduler(options), executor, () => ({ decodeMs: nativeMs, samplingMs: 2 * nativeMs }));
    const request = { promptTokens: Int32Array.from({ length: 12 }, (_, i) => i), maxTokens: 3, salt: "", ignoreEndOfGeneration: true };
    recorder.scheduler.submit({ ...request, id: "r", sequences: [{ id: "r/0", outputTokens: [] }] }, 0);
    const tokens: number[] = [];
    for (let plan = recorder.scheduler.plan(); plan.rows.length > 0; plan = recorder.scheduler.plan()) {
      tokens.push(plan.rows.reduce((sum, row) => sum + row.tokens.length, 0));
      recorder.scheduler.commit(plan, await recorder.executor.execute(plan), 0);
    }
    const steps = recorder.take();
    expect(tokens).toEqual([8, 4, 1, 1]);
    expect(steps.map((step) => step.tokens)).toEqual(tokens);
    expect(steps.map(({ rows, decodeMs, samplingMs }) => ({ rows, decodeMs, samplingMs }))).toEqual(
      tokens.map(() => ({ rows: 1, decodeMs: 5, samplingMs: 10 })),
    );
    for (const [i, step] of steps.slice(1).entries()) expect(step.beganMs).toBe(steps[i]?.endedMs);
    expect(recorder.take()).toEqual([]);
  });
});
