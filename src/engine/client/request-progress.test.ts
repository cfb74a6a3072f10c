import { describe, expect, test } from "vitest";
import type { ChoiceEvent, GenerateRequest } from "../protocol.js";
import { applyEvent, cancelChoices, continuation, createProgress, endingEvents, isFinished, settledChoices } from "./request-progress.js";

function request(choices: number, maxTokens = 3): GenerateRequest {
  return {
    id: "request",
    promptTokens: [1, 2],
    choices: Array.from({ length: choices }, (_, index) => ({ index, seed: 10 + index, outputTokens: [] })),
    maxTokens,
    sampling: { temperature: 0 },
    ignoreEndOfGeneration: false,
    salt: "",
  };
}

function event(index: number, news: Partial<ChoiceEvent>): ChoiceEvent {
  return { request: "wire", index, ...news };
}

const started = { queueMs: 1, cachedTokens: 0 };

describe("news", () => {
  test("is passed on under the request's own id", () => {
    const progress = createProgress(request(1));
    expect(applyEvent(progress, event(0, { started, token: 5 }))).toEqual({ request: "request", index: 0, started, token: 5 });
  });

  test("of a second start is not news", () => {
    const progress = createProgress(request(1));
    applyEvent(progress, event(0, { started }));
    expect(applyEvent(progress, event(0, { started }))).toBeUndefined();
    expect(applyEvent(progress, event(0, { started, token: 5 }))).toEqual({ request: "request", index: 0, token: 5 });
  });

  test("of a choice that has finished, or never was, is not news", () => {
    const progress = createProgress(request(1));
    applyEvent(progress, event(0, { finish: "stop" }));
    expect(applyEvent(progress, event(0, { token: 5 }))).toBeUndefined();
    expect(applyEvent(progress, event(7, { token: 5 }))).toBeUndefined();
    expect(isFinished(progress)).toBe(true);
  });
});

describe("after a loss", () => {
  test("the continuation has the unfinished choices with the tokens they have", () => {
    const progress = createProgress(request(2));
    applyEvent(progress, event(0, { token: 5, finish: "stop" }));
    applyEvent(progress, event(1, { token: 6 }));
    expect(continuation(progress, "again")).toEqual({ ...request(2), id: "again", choices: [{ index: 1, seed: 11, outputTokens: [6] }] });
  });

  test("cancelled choices and those with all their tokens are settled, the others are not", () => {
    const progress = createProgress(request(3, 2));
    for (const token of [5, 6]) applyEvent(progress, event(0, { token }));
    applyEvent(progress, event(2, { token: 7 }));
    expect(cancelChoices(progress, 1)).toEqual([1]);
    expect(cancelChoices(progress, 1)).toEqual([]);
    expect(settledChoices(progress)).toEqual([
      { request: "request", index: 0, finish: "length" },
      { request: "request", index: 1, finish: "cancelled" },
    ]);
  });

  test("an ending reaches each unfinished choice", () => {
    const progress = createProgress(request(2));
    applyEvent(progress, event(0, { finish: "stop" }));
    expect(endingEvents(progress, { finish: "error" })).toEqual([{ request: "request", index: 1, finish: "error" }]);
  });
});
