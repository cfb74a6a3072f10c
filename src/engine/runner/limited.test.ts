import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { limited } from "./limited.js";

test.prop([fc.integer({ min: 1, max: 4 }), fc.array(fc.boolean(), { maxLength: 20 })])(
  "never more than the limit run, all run, in order, failures included",
  async (limit, jobs) => {
    let running = 0;
    let most = 0;
    const begun: number[] = [];
    const run = limited(limit, async (job: number) => {
      begun.push(job);
      running += 1;
      most = Math.max(most, running);
      await Promise.resolve();
      running -= 1;
      if (jobs[job] === false) throw new Error("failed");
      return job;
    });
    const results = await Promise.allSettled(jobs.map((_, job) => run(job)));
    expect(begun).toEqual(jobs.map((_, job) => job));
    expect(most).toBe(Math.min(limit, jobs.length));
    expect(results.map(({ status }) => status === "fulfilled")).toEqual(jobs);
  },
);
