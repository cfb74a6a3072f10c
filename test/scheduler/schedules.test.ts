import { fc, test } from "@fast-check/vitest";
import { afterAll, describe, expect } from "vitest";
import { simulatedSoloRun } from "../../src/engine/simulated/simulated-executor.js";
import { arbitrarySchedule, type Schedule } from "./arbitrary-schedule.js";
import { simulate, simulatedModel, type World } from "./world.js";

const numRuns = Number(process.env["PAGODA_TEST_SCHEDULES"] ?? 1500);

function soloRun(schedule: Schedule, sequence: string): number[] {
  const request = schedule.arrivals.find(({ request: { sequences } }) => sequences.some(({ id }) => id === sequence))?.request;
  if (request === undefined) throw new Error(`No request has a sequence ${sequence}.`);
  return simulatedSoloRun(Array.from(request.promptTokens), request.maxTokens, schedule.options.contextTokens, simulatedModel);
}

function expectLawful(schedule: Schedule, world: World, mayFail = false): void {
  for (const [sequence, { tokens, finish, started }] of world.received) {
    const alone = soloRun(schedule, sequence);
    expect(["stop", "length", "cancelled", ...(mayFail ? ["error"] : [])]).toContain(finish);
    if (finish === "cancelled" || finish === "error") {
      expect(tokens).toEqual(alone.slice(0, tokens.length));
      expect(started).toBeLessThanOrEqual(1);
    } else {
      expect(tokens).toEqual(alone);
      expect(started).toBe(1);
      expect(finish).toBe(alone.at(-1) === 0 ? "stop" : "length");
    }
  }
  for (const [id, refusal] of world.refused) {
    const request = schedule.arrivals.find((arrival) => arrival.request.id === id)?.request;
    if (refusal.kind === "neverFits") expect(request?.promptTokens.length).toBeGreaterThanOrEqual(schedule.options.contextTokens);
    else expect(refusal.kind).toBe("queueFull");
  }
  const { running, waiting, waitingTokens, pagesUsed } = world.scheduler.stats();
  expect({ running, waiting, waitingTokens, pagesUsed }).toEqual({ running: 0, waiting: 0, waitingTokens: 0, pagesUsed: 0 });
}

describe.each(["unified", "streams"] as const)("%s layout", (layout) => {
  describe.each([true, false])("slots can be trimmed: %s", (canTrim) => {
    const seen = { preemptions: 0, shares: 0, copies: 0, takeOvers: 0, trims: 0 };

    test.prop([arbitrarySchedule({ layout, canTrim })], { numRuns })(
      "every admitted request finishes, and its tokens come out once, in order, as if it ran alone",
      async (schedule) => {
        const world = await simulate(schedule.options, schedule.arrivals, schedule.stepLimit);
        expectLawful(schedule, world);
        for (const key of Object.keys(seen) as (keyof typeof seen)[]) seen[key] += world.seen[key];
      },
    );

    const faults = fc.record({ rows: fc.integer({ min: 2, max: 30 }), moves: fc.integer({ min: 2, max: 10 }), seed: fc.nat() });
    let failures = 0;

    test.prop([arbitrarySchedule({ layout, canTrim }), faults], { numRuns })(
      "what fails ends alone, and nothing of it reaches another",
      async (schedule, { rows, moves, seed }) => {
        let count = seed;
        const oneIn = (interval: number) => () => ++count % interval === 0;
        const world = await simulate(schedule.options, schedule.arrivals, schedule.stepLimit, { failsRow: oneIn(rows), failsMove: oneIn(moves) });
        expectLawful(schedule, world, true);
        failures += Array.from(world.received.values()).filter(({ finish }) => finish === "error").length;
      },
    );

    afterAll(() => {
      expect(failures).toBeGreaterThan(0);
      // The law says little if the schedules never came to the hard places.
      expect(seen.trims).toBeGreaterThan(0);
      expect(seen.takeOvers).toBeGreaterThan(0);
      expect(seen.shares > 0).toBe(layout === "unified" && canTrim);
      expect(seen.copies > 0).toBe(layout === "streams" && canTrim);
      expect(seen.preemptions > 0).toBe(layout === "unified");
    });
  });
});
