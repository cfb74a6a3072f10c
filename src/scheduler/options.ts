/** What a scheduler is made with: plain numbers, settled before it starts. */

/** A region of the KV cache inside which sequences can share pages without a copy. */
export interface ArenaGeometry {
  readonly pages: number;
  /** The engine's sequence ids that live in this arena. */
  readonly slots: readonly number[];
}

export interface KvGeometry {
  readonly pageTokens: number;
  /** One arena for all slots in the unified layout, one arena for each slot in the streams layout. */
  readonly arenas: readonly ArenaGeometry[];
  /** Whether a slot can be trimmed; if not, only exact continuations of what it holds are reused. */
  readonly canTrim: boolean;
}

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
