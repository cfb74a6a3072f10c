/** Many requests at once, half of which leave at a random moment: the others get their answers, and nothing of those who left stays. */
import { fc, test } from "@fast-check/vitest";
import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect } from "vitest";
import { ask, clientsOf, expectedAnswer, isAbort } from "./asking.js";
import { type Server, startServer, untilIdle } from "./server.js";
import { questions } from "./tasks.js";

const crowd = 64;

/** When half of the requests leave: each after so many pieces of text of all streams together, 0 being at once. */
const departures = fc.array(fc.nat({ max: 600 }), { minLength: crowd / 2, maxLength: crowd / 2 });

describe.each([
  { where: "with room for all", settings: [], preempts: false },
  { where: "in a cache so small that they push each other out", settings: ["kv.layout=unified", "kv.tokens=320", "kv.pageTokens=16"], preempts: true },
  { where: "in streams of their own", settings: ["kv.layout=streams", "scheduler.maxSequences=4", "kv.tokens=1024"], preempts: false },
])("$where", ({ settings, preempts }) => {
  let server: Server;
  beforeAll(async () => {
    server = await startServer(...settings);
  });
  afterAll(async () => {
    expect(await server.stop()).toMatchObject({ code: 0, stderr: expect.not.stringContaining('"level":"error"') });
  });

  // Three crowds; a failure is told at once instead of looking for a smaller one, which would take minutes.
  test.prop([departures, fc.infiniteStream(fc.boolean())], { numRuns: 3, endOnFailure: true })(
    `${crowd} requests, half of them aborted: every other answer is the one it gets alone, and afterwards nothing is held`,
    async (leaveAfter, isStreamed) => {
      const both = clientsOf(server);
      let pieces = 0;
      const pending = leaveAfter.map((after) => ({ after, controller: new AbortController() }));
      const abortDue = (isOver = false): void => {
        for (const { after, controller } of pending) if (isOver || after <= pieces) controller.abort();
      };
      const onText = (): void => {
        pieces += 1;
        abortDue();
      };
      const asked = questions.map((task, index) => {
        const client = both[index % 2] as OpenAI;
        const signal = index % 4 < 2 ? pending[Math.floor(index / 4) * 2 + (index % 2)]?.controller.signal : undefined;
        const [stream = false] = isStreamed.take(1);
        return { task, signal, answer: ask(client, task.fields, { stream, onText, signal }) };
      });
      abortDue();
      const staying = asked.filter(({ signal }) => signal === undefined);
      const leaving = asked.filter(({ signal }) => signal !== undefined);
      expect([staying.length, leaving.length]).toEqual([crowd / 2, crowd / 2]);
      const left = Promise.allSettled(leaving.map(({ answer }) => answer));
      const answers = await Promise.all(staying.map(({ answer }) => answer));
      abortDue(true);
      expect(answers).toMatchObject(staying.map(({ task }) => expectedAnswer(task)));
      // Who was too late to leave has the right answer as well.
      (await left).forEach((result, index) => {
        const { task, signal } = leaving[index] as (typeof leaving)[number];
        if (result.status === "fulfilled") expect(result.value).toMatchObject(expectedAnswer(task));
        else expect(isAbort(result.reason, signal as AbortSignal), String(result.reason)).toBe(true);
      });
      await untilIdle(server);
    },
    60_000,
  );

  test("requests did leave, and whoever stayed was counted as answered", async () => {
    const ended = async (reason: string) => server.figure("vllm:request_success_total", { finished_reason: reason });
    expect(await ended("abort")).toBeGreaterThan(0);
    expect(await ended("stop")).toBeGreaterThanOrEqual(3 * (crowd / 2));
    expect(await ended("error")).toBe(0);
    if (preempts) expect(await server.figure("vllm:num_preemptions_total")).toBeGreaterThan(0);
    expect(await server.figure("pagoda_engine_restarts_total")).toBe(0);
  });
});
