/** What carries out step plans: the real engine, or a simulated one. Both pass the same conformance suite. */
import type { SequenceId, StepOutcome, StepPlan } from "../../scheduler/step-plan.js";
import type { SamplingParameters } from "../protocol.js";

export interface SequenceStart {
  readonly sequence: SequenceId;
  readonly sampling: SamplingParameters;
  readonly seed: number;
  /** Log probabilities of how many alternatives each token carries; undefined for none at all. */
  readonly topLogprobs?: number;
  readonly ignoreEndOfGeneration: boolean;
  /** All tokens known so far, prompt and output: penalties look at them, and the seed's next draw follows from their number. */
  readonly promptTokens: Int32Array;
  readonly outputTokens: readonly number[];
}

export interface Executor {
  /** Prepares sampling for a sequence; it keeps through preemption, until `end`. */
  begin(start: SequenceStart): void;
  end(sequence: SequenceId): void;
  /**
   * Applies the plan's moves, computes its rows and samples.
   * A row's own fault is a result; rejects only when the engine can compute nothing any more.
   */
  execute(plan: StepPlan): Promise<StepOutcome>;
}
