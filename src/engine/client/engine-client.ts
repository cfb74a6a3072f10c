/** What the gateway holds of an engine: the same contract whether the engine is a child process or on another machine. */
import type { ChoiceEvent, EngineInfo, EngineStats, GenerateRequest, ModelInfo, TextSegment } from "../protocol.js";

export type { FinishReason, TokenLogprob } from "../../scheduler/step-plan.js";
export type {
  ChoiceEvent,
  EngineInfo,
  EngineStats,
  GenerateChoice,
  GenerateRequest,
  ModelInfo,
  SamplingParameters,
  TextSegment,
  VocabularyInfo,
} from "../protocol.js";

/** A request that an engine has taken. */
export interface Generation {
  /**
   * The choices' news in order, each token once, also over the loss of an engine.
   * Ends after every choice has had its `finish`; never throws: a failure is a `finish` of `error`.
   */
  readonly events: AsyncIterable<ChoiceEvent>;
  /** Ends one choice, or all of them; their `finish` is then `cancelled`. Harmless when they have ended. */
  cancel(index?: number): void;
}

export type EngineState = "starting" | "ready" | "restarting" | "failed" | "stopped";

export interface EngineClientEvents {
  /** One engine died; `willRestart` is false when the client gives up or is stopping. */
  onExit(listener: (exit: { readonly code: number | null; readonly signal: string | null; readonly willRestart: boolean }) => void): void;
}

export interface EngineClient extends EngineClientEvents {
  readonly state: EngineState;
  /** Resolves when a model can answer; rejects with the coded error of a load that failed. */
  ready(): Promise<{ readonly model: ModelInfo; readonly engine: EngineInfo }>;
  /**
   * Hands a request to an engine. Resolves when it is in the queue (only then may a stream begin);
   * rejects with a coded error: queue full (429), never fits (400), no engine within the configured time (503).
   * `signal` aborts the wait and the generation.
   */
  submit(request: GenerateRequest, signal?: AbortSignal): Promise<Generation>;
  /** Token ids of each segment, with the model's own vocabulary. */
  tokenize(segments: readonly TextSegment[], options: { readonly addSpecial: boolean }, signal?: AbortSignal): Promise<readonly (readonly number[])[]>;
  /** The last step's figures, one entry for each replica that is up. */
  stats(): readonly EngineStats[];
  /** How often an engine was started again. */
  readonly restarts: number;
  /** Waits for running work up to `graceMs`, then ends the engines. */
  close(graceMs: number): Promise<void>;
}
