/** Everything that the scheduler remembers from one step to the next. */
import { createKvCache, type KvCache } from "../kv-cache/kv-cache.js";
import { createDrainRate, type DrainRate } from "./drain-rate.js";
import type { SchedulerOptions } from "./options.js";
import type { Sequence } from "./sequence.js";
import type { SequenceId } from "./step-plan.js";
import { createWaitingQueue, type WaitingQueue } from "./waiting-queue.js";

export interface SchedulerState {
  readonly options: SchedulerOptions;
  readonly kv: KvCache;
  /** Sequences that hold a slot, by arrival. */
  readonly running: Sequence[];
  readonly waiting: WaitingQueue;
  /** All sequences that have not ended. */
  readonly sequences: Map<SequenceId, Sequence>;
  readonly drainRate: DrainRate;
  readonly counters: { preemptions: number; prefixQueryTokens: number; prefixHitTokens: number };
  nextOrder: number;
}

export function createSchedulerState(options: SchedulerOptions): SchedulerState {
  return {
    options,
    kv: createKvCache(options.kv),
    running: [],
    waiting: createWaitingQueue(),
    sequences: new Map(),
    drainRate: createDrainRate(),
    counters: { preemptions: 0, prefixQueryTokens: 0, prefixHitTokens: 0 },
    nextOrder: 0,
  };
}
