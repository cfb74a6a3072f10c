import { describe, expect, test } from "vitest";
import type { KvGeometry, SchedulerOptions } from "./options.js";
import { createScheduler, type Scheduler } from "./scheduler.js";
import type { RowResult, ScheduledRequest, SequenceEvent, StepPlan } from "./step-plan.js";

const unified: KvGeometry = { pageTokens: 4, arenas: [{ pages: 16, slots: [0, 1, 2, 3, 4, 5, 6, 7] }], canTrim: true };
const streams: KvGeometry = { pageTokens: 4, arenas: [0, 1, 2, 3].map((slot) => ({ pages: 8, slots: [slot] })), canTrim: true };
const defaults: SchedulerOptions = {
  maxSequences: 4,
  maxBatchTokens: 16,
  maxQueuedRequests: 8,
  maxQueuedTokens: 1000,
  contextTokens: 32,
  sharePrefixes: true,
  kv: unified,
};

function request(id: string, promptLength: number, changes: Partial<ScheduledRequest> & { choices?: number; firstToken?: number } = {}): ScheduledRequest {
  const { choices = 1, firstToken = 100, ...rest } = changes;
  const promptTokens = Int32Array.from({ length: promptLength }, (_, position) => firstToken + position);
  const sequences = Array.from({ length: choices }, (_, index) => ({ id: `${id}/${index}`, outputTokens: [] }));
  return { id, promptTokens, sequences, maxTokens: 20, salt: "", ignoreEndOfGeneration: false, ...rest };
}

/** Carries out one step in which every row succeeds and every sampled token is 7. */
function step(scheduler: Scheduler, nowMs = 0, result?: (row: StepPlan["rows"][number]) => RowResult): { plan: StepPlan; events: SequenceEvent[] } {
  const plan = scheduler.plan();
  const sampled: RowResult = { kind: "sampled", token: 7, isEndOfGeneration: false };
  const results = plan.rows.map((row): RowResult => result?.(row) ?? (row.logits === "last" ? sampled : { kind: "computed" }));
  return { plan, events: scheduler.commit(plan, { results }, nowMs) };
}

const shape = (plan: StepPlan) => plan.rows.map((row) => `${row.sequence}@${row.start}+${row.tokens.length}`);

describe("steps", () => {
  test("a running sequence has its token before a prompt has its chunk, and the chunk fills what is left", () => {
    const scheduler = createScheduler({ ...defaults, maxBatchTokens: 8 });
    scheduler.submit(request("a", 3), 0);
    step(scheduler);
    scheduler.submit(request("b", 20, { firstToken: 500 }), 0);
    expect(shape(step(scheduler).plan)).toEqual(["a/0@3+1", "b/0@0+7"]);
    expect(shape(step(scheduler).plan)).toEqual(["a/0@4+1", "b/0@7+7"]);
    expect(step(scheduler).plan.rows.map((row) => row.logits)).toEqual(["last", "last"]);
  });

  test("the prompt that began first is finished first", () => {
    const scheduler = createScheduler({ ...defaults, maxBatchTokens: 10 });
    scheduler.submit(request("a", 12), 0);
    scheduler.submit(request("b", 12, { firstToken: 500 }), 0);
    expect(shape(step(scheduler).plan)).toEqual(["a/0@0+10"]);
    expect(shape(step(scheduler).plan)).toEqual(["a/0@10+2", "b/0@0+8"]);
  });

  test("a request ends with the model's end token, its limit, or the context", () => {
    const scheduler = createScheduler({ ...defaults, contextTokens: 12 });
    scheduler.submit(request("stop", 3), 0);
    scheduler.submit(request("limit", 3, { maxTokens: 1, firstToken: 300 }), 0);
    scheduler.submit(request("none", 3, { maxTokens: 0, firstToken: 400 }), 0);
    scheduler.submit(request("context", 7, { firstToken: 500 }), 0);
    const first = step(scheduler, 0, (row) =>
      row.sequence === "stop/0" ? { kind: "sampled", token: 2, isEndOfGeneration: true } : { kind: "sampled", token: 7, isEndOfGeneration: false },
    );
    expect(first.events.map(({ sequence, token, finish }) => ({ sequence, token, finish }))).toEqual([
      { sequence: "stop/0", token: 2, finish: "stop" },
      { sequence: "limit/0", token: 7, finish: "length" },
      { sequence: "none/0", token: undefined, finish: "length" },
      { sequence: "context/0", token: 7, finish: undefined },
    ]);
    const rest = Array.from({ length: 4 }, () => step(scheduler).events[0]);
    expect(rest.map((event) => event?.finish)).toEqual([undefined, undefined, undefined, "length"]);
  });

  test("an end token that is to be ignored is a token like any other", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 3, { ignoreEndOfGeneration: true, maxTokens: 2 }), 0);
    const end: RowResult = { kind: "sampled", token: 2, isEndOfGeneration: true };
    expect(step(scheduler, 0, () => end).events[0]?.finish).toBeUndefined();
    expect(step(scheduler, 0, () => end).events[0]?.finish).toBe("length");
  });
});

test("a request has waited until the step that admits it was planned", () => {
  const scheduler = createScheduler(defaults);
  scheduler.submit(request("a", 10), 100);
  const events = scheduler.commit(scheduler.plan(), { results: [{ kind: "sampled", token: 7, isEndOfGeneration: false }] }, 170, 130);
  expect(events).toEqual([{ sequence: "a/0", token: 7, started: { queueMs: 30, cachedTokens: 0 } }]);
});

describe("sharing", () => {
  test("the choices of one request compute its prompt once", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 11, { choices: 3 }), 0);
    expect(shape(step(scheduler).plan)).toEqual(["a/0@0+11"]);
    const { plan } = step(scheduler);
    expect(plan.moves.map((move) => move.kind)).toEqual(["share", "share"]);
    expect(shape(plan)).toEqual(["a/0@11+1", "a/1@10+1", "a/2@10+1"]);
    // 3 pages of the first; the others share 2 full ones and hold one of their own each.
    expect(scheduler.stats().pagesUsed).toBe(5);
  });

  test("a conversation that goes on takes over its own slot and computes only what is new", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 11, { maxTokens: 1 }), 0);
    step(scheduler);
    scheduler.submit(request("b", 14), 5);
    const { plan, events } = step(scheduler, 9);
    expect(plan.moves).toEqual([]);
    expect(shape(plan)).toEqual(["b/0@11+3"]);
    expect(events[0]?.started).toEqual({ queueMs: 4, cachedTokens: 11 });
  });

  test("between arenas a running prefix is copied", () => {
    const scheduler = createScheduler({ ...defaults, kv: streams });
    scheduler.submit(request("a", 14), 0);
    step(scheduler);
    scheduler.submit(request("b", 16), 0);
    const { plan } = step(scheduler);
    expect(plan.moves).toEqual([{ kind: "copy", from: 0, to: 1, tokens: 14 }]);
    expect(shape(plan)).toEqual(["a/0@14+1", "b/0@14+2"]);
  });

  test("trust groups do not meet", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 11, { salt: "one", maxTokens: 1 }), 0);
    step(scheduler);
    scheduler.submit(request("b", 11, { salt: "two" }), 0);
    expect(shape(step(scheduler).plan)).toEqual(["b/0@0+11"]);
  });

  test("nothing is shared when sharing is off", () => {
    const scheduler = createScheduler({ ...defaults, sharePrefixes: false });
    scheduler.submit(request("a", 4, { choices: 2 }), 0);
    expect(shape(step(scheduler).plan)).toEqual(["a/0@0+4", "a/1@0+4"]);
  });
});

describe("when pages run out", () => {
  const tight: SchedulerOptions = { ...defaults, contextTokens: 24, kv: { pageTokens: 4, arenas: [{ pages: 6, slots: [0, 1, 2, 3] }], canTrim: true } };

  test("the youngest yields its pages, keeps what is left of them, and comes back to finish", () => {
    const scheduler = createScheduler(tight);
    scheduler.submit(request("old", 7), 0);
    scheduler.submit(request("young", 7, { firstToken: 500 }), 0);
    const finished: string[] = [];
    let preempted: readonly string[] = [];
    for (let i = 0; i < 60; i++) {
      const { plan, events } = step(scheduler);
      preempted = [...preempted, ...plan.preempted];
      for (const event of events) if (event.finish !== undefined) finished.push(`${event.sequence} ${event.finish}`);
    }
    expect(preempted).toContain("young/0");
    expect(preempted).not.toContain("old/0");
    expect(finished).toEqual(["old/0 length", "young/0 length"]);
    expect(scheduler.stats().preemptions).toBe(preempted.length);
  });

  test("a request waits until its whole prompt has room", () => {
    const scheduler = createScheduler(tight);
    scheduler.submit(request("a", 14), 0);
    step(scheduler);
    scheduler.submit(request("b", 10, { firstToken: 500 }), 0);
    expect(step(scheduler).plan.admitted).toEqual([]);
    expect(scheduler.stats()).toMatchObject({ running: 1, waiting: 1 });
  });
});

describe("refusals", () => {
  test("a prompt that fills the context can never be answered", () => {
    const scheduler = createScheduler(defaults);
    expect(scheduler.submit(request("a", 32), 0)).toEqual({ kind: "neverFits", promptTokens: 32, contextTokens: 32 });
    expect(scheduler.submit(request("b", 31), 0)).toBeUndefined();
    expect(scheduler.submit(request("c", 0), 0)).toEqual({ kind: "emptyPrompt" });
  });

  test("past the queue's limit a request is refused with the time that the queue needs", () => {
    const scheduler = createScheduler({ ...defaults, maxSequences: 1, maxQueuedRequests: 2 });
    scheduler.submit(request("first", 3, { maxTokens: 1 }), 0);
    step(scheduler, 4000);
    const afterAnIdleHourMs = 3_604_000;
    scheduler.submit(request("second", 3, { maxTokens: 1 }), afterAnIdleHourMs);
    step(scheduler, afterAnIdleHourMs + 4000);
    for (const id of ["a", "b", "c"]) expect(scheduler.submit(request(id, 3), afterAnIdleHourMs + 4000)).toBeUndefined();
    const refusal = scheduler.submit(request("d", 3), afterAnIdleHourMs + 4000);
    expect(refusal).toEqual({ kind: "queueFull", unit: "requests", waiting: 2, limit: 2, retryAfterSeconds: 12 });
    expect(scheduler.submit(request("e", 3, { isResubmission: true }), 4000)).toBeUndefined();
  });

  test("waiting tokens are limited as well", () => {
    const scheduler = createScheduler({ ...defaults, maxSequences: 1, maxQueuedTokens: 30 });
    scheduler.submit(request("a", 20), 0);
    expect(scheduler.submit(request("b", 20), 0)).toMatchObject({ kind: "queueFull", unit: "tokens", limit: 30 });
  });

  test("with no queue, a request is taken when a place is free", () => {
    const scheduler = createScheduler({ ...defaults, maxSequences: 1, maxQueuedRequests: 0 });
    expect(scheduler.submit(request("a", 3), 0)).toBeUndefined();
    expect(scheduler.submit(request("b", 3), 0)).toMatchObject({ kind: "queueFull" });
  });
});

describe("cancelling", () => {
  test("a waiting request leaves without a step of its own, a running one at the next boundary", () => {
    const scheduler = createScheduler({ ...defaults, maxSequences: 1 });
    scheduler.submit(request("a", 10), 0);
    step(scheduler);
    scheduler.submit(request("b", 10, { firstToken: 500 }), 0);
    scheduler.cancel("b/0");
    expect(step(scheduler).events.find((event) => event.sequence === "b/0")).toEqual({ sequence: "b/0", finish: "cancelled" });
    scheduler.cancel("a/0");
    expect(step(scheduler).events).toEqual([{ sequence: "a/0", finish: "cancelled" }]);
    expect(scheduler.stats()).toMatchObject({ running: 0, waiting: 0, pagesUsed: 0 });
  });

  test("what was cancelled while a step ran gets no token of that step", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 3), 0);
    const plan = scheduler.plan();
    scheduler.cancel("a/0");
    const events = scheduler.commit(plan, { results: [{ kind: "sampled", token: 7, isEndOfGeneration: false }] }, 0);
    expect(events.map(({ token, finish }) => ({ token, finish }))).toEqual([{ token: undefined, finish: "cancelled" }]);
  });

  test("an unknown id is ignored", () => {
    const scheduler = createScheduler(defaults);
    scheduler.cancel("nobody/0");
    expect(scheduler.plan().ended).toEqual([]);
  });
});

describe("faults of the engine", () => {
  const error = { code: "x", status: 500, type: "server_error", retryable: false, message: "x" };

  test("a row that fails ends its own sequence only", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 3), 0);
    scheduler.submit(request("b", 3, { firstToken: 500 }), 0);
    const { events } = step(scheduler, 0, (row) =>
      row.sequence === "a/0" ? { kind: "failed", error } : { kind: "sampled", token: 7, isEndOfGeneration: false },
    );
    expect(events.map(({ sequence, finish }) => ({ sequence, finish }))).toEqual([
      { sequence: "a/0", finish: "error" },
      { sequence: "b/0", finish: undefined },
    ]);
  });

  test("a slot in which a row failed is emptied before anything else, and nothing of it is used again", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 8, { maxTokens: 1 }), 0);
    step(scheduler, 0, () => ({ kind: "failed", error }));
    expect(scheduler.stats()).toMatchObject({ pagesUsed: 0, pagesCached: 0 });
    scheduler.submit(request("b", 8), 0);
    const { plan } = step(scheduler);
    expect(plan.moves[0]).toEqual({ kind: "trim", slot: 0, keepTokens: 0 });
    expect(shape(plan)).toEqual(["b/0@0+8"]);
    expect(step(scheduler).plan.moves).toEqual([]);
  });

  test("no room against the books is tried again, and given up after the third time", () => {
    const scheduler = createScheduler(defaults);
    scheduler.submit(request("a", 3), 0);
    const noRoom = () => step(scheduler, 0, () => ({ kind: "noRoom" })).events.find((event) => event.finish !== undefined);
    expect(noRoom()).toBeUndefined();
    expect(noRoom()).toBeUndefined();
    expect(noRoom()).toMatchObject({ finish: "error", error: { code: "kv_exhausted" } });
  });
});

test("a request that goes on after its engine was lost computes prompt and output, and counts its output against the limit", () => {
  const scheduler = createScheduler(defaults);
  const lost = { ...request("a", 3, { maxTokens: 4 }), sequences: [{ id: "a/0", outputTokens: [7, 7, 7] }] };
  scheduler.submit(lost, 0);
  const { plan, events } = step(scheduler);
  expect(shape(plan)).toEqual(["a/0@0+6"]);
  expect(events[0]).toMatchObject({ token: 7, finish: "length" });
});
