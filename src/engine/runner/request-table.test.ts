import { beforeEach, describe, expect, test } from "vitest";
import { invalidRequest } from "../../errors.js";
import { createScheduler, type Scheduler } from "../../scheduler/scheduler.js";
import type { Executor, SequenceStart } from "../executor/executor.js";
import type { GenerateRequest } from "../protocol.js";
import { createRequestTable, type RequestTable } from "./request-table.js";

const kv = { pageTokens: 4, canTrim: true, arenas: [{ pages: 32, slots: [0, 1, 2, 3] }] };
const options = { maxSequences: 2, maxBatchTokens: 8, maxQueuedRequests: 1, maxQueuedTokens: 999, contextTokens: 100, sharePrefixes: true, kv };

let begun: Map<string, SequenceStart>;
let scheduler: Scheduler;
let table: RequestTable;
beforeEach(() => {
  begun = new Map();
  const executor: Executor = {
    begin(start) {
      if (start.seed === 13) throw invalidRequest({ message: "13 is not a good seed." });
      begun.set(start.sequence, start);
    },
    end: (sequence) => void begun.delete(sequence),
    execute: () => Promise.reject(new Error("nothing is computed here")),
  };
  scheduler = createScheduler(options);
  table = createRequestTable(scheduler, executor);
});

function request(id: string, changes: Partial<GenerateRequest> = {}): GenerateRequest {
  const choices = [0, 1].map((index) => ({ index, seed: index, outputTokens: [] }));
  return { id, promptTokens: [1, 2, 3], choices, maxTokens: 5, sampling: { temperature: 1 }, ignoreEndOfGeneration: false, salt: "", ...changes };
}

describe("a request that is taken", () => {
  test("begins one sequence for each choice, and ends each with its finish", () => {
    expect(table.submit(request("a#1"), 0)).toBeUndefined();
    expect([...begun.keys()]).toEqual(["a#1/0", "a#1/1"]);
    expect(begun.get("a#1/1")).toMatchObject({ seed: 1, promptTokens: Int32Array.of(1, 2, 3) });
    expect(table.translate([{ sequence: "a#1/1", token: 7, finish: "stop" }])).toEqual([{ request: "a#1", index: 1, token: 7, finish: "stop" }]);
    expect([...begun.keys()]).toEqual(["a#1/0"]);
    expect(table.size).toBe(1);
  });

  test("is cancelled by request and index", () => {
    table.submit(request("a#1"), 0);
    table.cancel("a#1", 1);
    table.cancel("unknown", 0);
    expect(scheduler.plan().ended).toEqual(["a#1/1"]);
  });
});

describe("a request that is refused leaves nothing behind", () => {
  test("when its sampling is impossible", () => {
    const choices = [1, 13].map((seed, index) => ({ index, seed, outputTokens: [] }));
    expect(table.submit(request("a#1", { choices }), 0)).toMatchObject({ code: "invalid_request", message: "13 is not a good seed." });
  });
  test("when it can never fit", () => {
    const promptTokens = Array.from({ length: 100 }, () => 1);
    expect(table.submit(request("a#1", { promptTokens }), 0)).toMatchObject({ code: "context_length_exceeded", details: { n_prompt_tokens: 100, n_ctx: 100 } });
  });
  test("when it has no tokens", () => {
    expect(table.submit(request("a#1", { promptTokens: [] }), 0)).toMatchObject({ status: 400, param: "messages" });
  });
  test.for([false, true])("when the queue is full, unless it was accepted before (%s)", (isResubmission) => {
    let taken = 0;
    while (table.submit(request(`a#${taken}`), 0) === undefined) taken += 1;
    const before = begun.size;
    expect(before).toBe(2 * taken);
    const refusal = table.submit(request("again", { isResubmission }), 0);
    if (isResubmission) expect(refusal).toBeUndefined();
    else expect(refusal).toMatchObject({ code: "queue_full", retryAfterSeconds: expect.any(Number) });
    expect(begun.size).toBe(isResubmission ? before + 2 : before);
  });

  test.for([{ seed: 13 }])("so nothing of it is planned", ({ seed }) => {
    table.submit(request("a#1", { choices: [{ index: 0, seed, outputTokens: [] }] }), 0);
    expect(scheduler.stats().waiting).toBe(0);
    expect(begun.size).toBe(0);
    expect(table.size).toBe(0);
  });
});
