import { fc, test } from "@fast-check/vitest";
import { expect } from "vitest";
import { createEventQueue } from "./event-queue.js";

function never(): void {
  throw new Error("The queue was not abandoned.");
}

test.prop([fc.array(fc.array(fc.integer()), { maxLength: 8 })])("every event comes out once and in order, whoever is faster", async (batches) => {
  const queue = createEventQueue<{ readonly value: number }>(never);
  const seen: number[] = [];
  const reader = (async () => {
    for await (const { value } of queue.events) seen.push(value);
  })();
  for (const batch of batches) {
    for (const value of batch) queue.push({ value });
    if (batch.length % 2 === 0) await Promise.resolve();
  }
  queue.end();
  await reader;
  expect(seen).toEqual(batches.flat());
});

test("a consumer that leaves early is told of once, and later events are dropped", async () => {
  let abandoned = 0;
  const queue = createEventQueue<string>(() => {
    abandoned += 1;
  });
  queue.push("first");
  for await (const event of queue.events) {
    expect(event).toBe("first");
    break;
  }
  queue.push("second");
  queue.end();
  const rest: string[] = [];
  for await (const event of queue.events) rest.push(event);
  expect(rest).toEqual([]);
  expect(abandoned).toBe(1);
});

test("leaving while it waits for the next event does not hang", async () => {
  const queue = createEventQueue<string>(() => undefined);
  const iterator = queue.events[Symbol.asyncIterator]();
  const pending = iterator.next();
  await iterator.return?.();
  await expect(pending).resolves.toEqual({ done: true, value: undefined });
});
