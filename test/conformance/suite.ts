/** The laws of an engine: whatever is shared, chunked, batched, preempted or continued, an answer is the answer of the same request alone. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { SchedulerOptions } from "../../src/scheduler/options.js";
import { generate, type Job, type Run } from "./generate.js";
import type { ConformanceTarget, EngineShape, OpenEngine } from "./target.js";

const maxTokens = 24;

export function conformanceSuite(name: string, load: () => Promise<ConformanceTarget>): void {
  describe(`${name} engine`, () => {
    let target: ConformanceTarget;
    const alone = new Map<string, readonly number[]>();

    beforeAll(async () => {
      target = await load();
      for (const prompt of [...target.prompts, ...target.sharedPrompts]) {
        const run = await runOn({ layout: "unified" }, { maxSequences: 1, sharePrefixes: false }, [{ id: "a", prompt, maxTokens }]);
        alone.set(prompt.join(), run.answers.get("a/0")?.tokens ?? []);
      }
    }, 120_000);
    afterAll(async () => target.close());

    /** A fresh engine each time: nothing is left of the run before. */
    async function runOn(shape: Partial<EngineShape>, changes: Partial<SchedulerOptions> & { pages?: number }, jobs: readonly Job[]): Promise<Run> {
      const full: EngineShape = { layout: "unified", slots: 8, kvTokens: 4096, pageTokens: 16, maxBatchTokens: 256, ...shape };
      const engine: OpenEngine = await target.open(full);
      try {
        const { pages = Number.POSITIVE_INFINITY, ...options } = changes;
        const kv = { ...engine.kv, arenas: engine.kv.arenas.map((arena) => ({ ...arena, pages: Math.min(arena.pages, pages) })) };
        const contextTokens = Math.min(...kv.arenas.map((arena) => arena.pages)) * kv.pageTokens;
        const defaults = { maxSequences: 4, maxBatchTokens: full.maxBatchTokens, maxQueuedRequests: 100, maxQueuedTokens: 100_000, sharePrefixes: true };
        return await generate(engine.executor, { ...defaults, contextTokens, ...options, kv }, jobs);
      } finally {
        await engine.close();
      }
    }

    const jobsOf = (prompts: readonly (readonly number[])[], changes: Partial<Job> = {}): Job[] =>
      prompts.map((prompt, index) => ({ id: `p${index}`, prompt, maxTokens, ...changes }));

    function expectAlone(run: Run, jobs: readonly Job[]): void {
      for (const { id, prompt, choices = 1 } of jobs) {
        for (let index = 0; index < choices; index++) expect(run.answers.get(`${id}/${index}`)?.tokens, `${id}/${index}`).toEqual(alone.get(prompt.join()));
      }
      expect(run.pagesUsed).toBe(0);
    }

    test("the prompts have answers", () => {
      expect(alone.size).toBe(target.prompts.length + target.sharedPrompts.length);
      for (const tokens of alone.values()) expect(tokens.length).toBeGreaterThan(1);
    });

    describe.each(["unified", "streams"] as const)("%s layout", (layout) => {
      test("batched: requests that run together answer as they do alone", async () => {
        const jobs = jobsOf([...target.prompts, ...target.sharedPrompts]);
        expectAlone(await runOn({ layout }, { sharePrefixes: false, maxSequences: 8 }, jobs), jobs);
      });

      test("chunked: prompts that are computed a few tokens a step", async () => {
        const jobs = jobsOf(target.prompts);
        expectAlone(await runOn({ layout, maxBatchTokens: 7 }, {}, jobs), jobs);
      });

      test("shared: a prefix that another has computed is used, running or finished", async () => {
        const jobs = target.sharedPrompts.map((prompt, index) => ({ id: `s${index}`, prompt, maxTokens, step: index * 3 }));
        const run = await runOn({ layout }, {}, jobs);
        expectAlone(run, jobs);
        expect(run.moves.share > 0).toBe(layout === "unified");
        expect(run.moves.copy > 0).toBe(layout === "streams");
        expect(Math.max(...Array.from(run.answers.values(), (answer) => answer.cachedTokens))).toBeGreaterThan(16);
      });

      test("reused: slots that are taken over again and again", async () => {
        const jobs = [0, 1, 2].flatMap((round) =>
          jobsOf([...target.sharedPrompts, ...target.prompts], { step: round * 20 }).map((job) => ({ ...job, id: `${job.id}-${round}` })),
        );
        expectAlone(await runOn({ layout, slots: 3 }, { maxSequences: 2 }, jobs), jobs);
      });

      test("several choices of one prompt", async () => {
        const jobs = jobsOf(target.sharedPrompts.slice(0, 2), { choices: 3 });
        const run = await runOn({ layout }, { maxSequences: 6 }, jobs);
        expectAlone(run, jobs);
        expect(run.moves.share + run.moves.copy).toBeGreaterThan(0);
      });

      test("cancelled requests disturb nobody", async () => {
        const jobs = jobsOf([...target.prompts, ...target.sharedPrompts]);
        const cancelled = target.prompts.map((prompt, index) => ({ id: `c${index}`, prompt: [...prompt, ...prompt], maxTokens, cancelAt: 1 + index }));
        expectAlone(await runOn({ layout, maxBatchTokens: 40 }, {}, [...cancelled, ...jobs]), jobs);
      });

      test("continued: what an engine had generated before it was lost", async () => {
        const jobs = target.prompts.map((prompt, index) => {
          const answer = alone.get(prompt.join()) as number[];
          return { id: `k${index}`, prompt, maxTokens, output: answer.slice(0, Math.floor(answer.length / 2)) };
        });
        const run = await runOn({ layout }, {}, jobs);
        for (const { id, prompt, output } of jobs) expect([...output, ...(run.answers.get(`${id}/0`)?.tokens ?? [])]).toEqual(alone.get(prompt.join()));
      });
    });

    test("preempted: a pool too small for all at once", async () => {
      const jobs = jobsOf([...target.prompts, ...target.sharedPrompts]);
      const longest = Math.max(...jobs.map((job) => job.prompt.length)) + maxTokens;
      const run = await runOn({ pageTokens: 4 }, { pages: Math.ceil(longest / 4) + 2 }, jobs);
      expect(run.preemptions).toBeGreaterThan(0);
      expectAlone(run, jobs);
    });
  });
}
