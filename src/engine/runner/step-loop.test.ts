import { describe, expect, test } from "vitest";
import type { Scheduler } from "../../scheduler/scheduler.js";
import { createScheduler } from "../../scheduler/scheduler.js";
import type { Executor } from "../executor/executor.js";
import { createSimulatedExecutor, simulatedSoloRun } from "../simulated/simulated-executor.js";
import { runSteps, type StepReport } from "./step-loop.js";
import { createWorkSignal } from "./work-signal.js";

const model = { vocabularySize: 100, endOneIn: 0 };
const kv = { pageTokens: 4, canTrim: true, arenas: [{ pages: 32, slots: [0, 1, 2, 3] }] };
const options = { maxSequences: 2, maxBatchTokens: 8, maxQueuedRequests: 9, maxQueuedTokens: 999, contextTokens: 100, sharePrefixes: true, kv };

function submit(scheduler: Scheduler, id: string, maxTokens: number): void {
  const sequences = [{ id, outputTokens: [] }];
  scheduler.submit({ id, promptTokens: Int32Array.of(1, 2, 3), sequences, maxTokens, salt: "", ignoreEndOfGeneration: true }, 0);
}

function startLoop(executor: Executor, onReport: (step: StepReport) => void) {
  const scheduler = createScheduler(options);
  const work = createWorkSignal();
  const abort = new AbortController();
  const ended = runSteps({ scheduler, executor, work, report: onReport }, abort.signal);
  const stop = (): void => {
    abort.abort();
    work.notify();
  };
  return { scheduler, work, ended, stop };
}

describe("the step loop", () => {
  test("sleeps until there is work, does it, sleeps again, and ends when told to", async () => {
    const tokens: number[] = [];
    let plans = 0;
    const loop = startLoop(createSimulatedExecutor({ kv, model }), ({ events }) => {
      tokens.push(...events.flatMap((event) => (event.token === undefined ? [] : [event.token])));
      if (events.some((event) => event.finish !== undefined)) loop.stop();
    });
    const { plan } = loop.scheduler;
    loop.scheduler.plan = () => {
      plans += 1;
      return plan();
    };
    loop.work.notify();
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(plans).toBeLessThanOrEqual(2); // no polling
    submit(loop.scheduler, "a", 5);
    loop.work.notify();
    await loop.ended;
    expect(tokens).toEqual(simulatedSoloRun([1, 2, 3], 5, 100, model));
  });

  test("reads what arrives between two steps although no step waits for anything", async () => {
    let steps = 0;
    const loop = startLoop(createSimulatedExecutor({ kv, model }), () => {
      steps += 1;
      if (steps === 1) setImmediate(() => loop.scheduler.cancel("long"));
      if (loop.scheduler.stats().running === 0) loop.stop();
    });
    submit(loop.scheduler, "long", 90);
    loop.work.notify();
    await loop.ended;
    expect(steps).toBeLessThan(10);
  });

  test("rejects when the engine is broken", async () => {
    const executor = createSimulatedExecutor({
      kv,
      model,
      beforeRows: () => {
        throw new Error("out of order");
      },
    });
    const loop = startLoop(executor, () => undefined);
    submit(loop.scheduler, "a", 1);
    loop.work.notify();
    await expect(loop.ended).rejects.toThrow("out of order");
  });
});
