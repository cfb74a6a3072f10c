/** What one round of the engine benchmark computes, on either side, and what it found. */

/** The same for both sides: neither may compute under other conditions. */
export interface EngineJob {
  readonly modelPath: string;
  readonly threads: number;
  readonly sequenceCounts: readonly number[];
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Room of one sequence, in tokens; the KV cache has `max(sequenceCounts)` times as much. */
  readonly contextTokens: number;
  /** Tokens of one `llama_decode` at most. */
  readonly batchTokens: number;
  readonly kvLayout: "streams" | "unified";
  readonly flashAttention: boolean;
  /** What Pagoda's side computes with: `bundled`, or a folder with another build of the same release. */
  readonly libraries: string;
}

/** Tokens per second of all sequences together. */
export interface Throughput {
  readonly sequences: number;
  readonly prefill: number;
  readonly decode: number;
  /** As `decode`, with the time of sampling left out; the peer never samples, so there both are the same. */
  readonly decodeLessSampling: number;
}

/** Where the time of decode steps went, medians in milliseconds. */
export interface StepBreakdown {
  readonly sequences: number;
  readonly stepMs: number;
  readonly decodeMs: number;
  readonly samplingMs: number;
  /** Everything else: planning, filling the batch, booking, the message to the gateway, waiting for the event loop. */
  readonly outsideMs: number;
}

export interface OwnRound {
  readonly throughputs: readonly Throughput[];
  readonly breakdowns: readonly StepBreakdown[];
  readonly modelBytes: number;
  readonly kvBytes: number;
}

/** Room that the job needs for one sequence: its tokens, and what may be generated while others are still at their prompts. */
export function neededContextTokens(job: Pick<EngineJob, "promptTokens" | "outputTokens" | "sequenceCounts" | "batchTokens">): number {
  const prefillSteps = Math.ceil((Math.max(...job.sequenceCounts) * job.promptTokens) / (job.batchTokens / 2));
  return Math.ceil((job.promptTokens + job.outputTokens + prefillSteps + 8) / 256) * 256;
}
