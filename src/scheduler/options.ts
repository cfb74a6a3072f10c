/** What a scheduler is made with: plain numbers, settled before it starts. */
import type { KvGeometry } from "../kv-cache/geometry.js";

export type { ArenaGeometry, KvGeometry } from "../kv-cache/geometry.js";

export interface SchedulerOptions {
  /** Sequences that run at the same time. */
  readonly maxSequences: number;
  /** Tokens of one step, decode and prefill together. */
  readonly maxBatchTokens: number;
  readonly maxQueuedRequests: number;
  readonly maxQueuedTokens: number;
  /** Prompt and output of one sequence at most. */
  readonly contextTokens: number;
  readonly sharePrefixes: boolean;
  readonly kv: KvGeometry;
}
