import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { dropUnread, lingerMs } from "./unread-body.js";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A request of which only what is looked at is there. */
function incoming(complete = false) {
  const destroy = vi.fn();
  const raw = Object.assign(new EventEmitter(), { complete, socket: { destroy } });
  dropUnread(raw as unknown as IncomingMessage);
  return { raw, destroy };
}

it("waits for a body that comes slowly, but not for ever", () => {
  const { destroy } = incoming();
  vi.advanceTimersByTime(lingerMs - 1);
  expect(destroy).not.toHaveBeenCalled();
  vi.advanceTimersByTime(1);
  expect(destroy).toHaveBeenCalledOnce();
});

it("leaves a connection alone whose body has come to its end: the next request may be under way on it", () => {
  const { raw, destroy } = incoming();
  raw.emit("end");
  const { raw: silent, destroy: destroySilent } = incoming();
  silent.complete = true;
  const { destroy: destroyWhole } = incoming(true);
  vi.advanceTimersByTime(10 * lingerMs);
  for (const one of [destroy, destroySilent, destroyWhole]) expect(one).not.toHaveBeenCalled();
});
