/** The messages between the gateway and an engine process, and nothing else. Both sides refuse another `protocolVersion`. */
import type { WireError } from "../errors.js";
import type { FinishReason, SchedulerStats, TokenLogprob } from "../scheduler/step-plan.js";

export const protocolVersion = 1;

/** How tokens are drawn. Absent values switch a step off; nothing here has a default. */
export interface SamplingParameters {
  /** 0 takes the likeliest token. */
  readonly temperature: number;
  readonly topP?: number;
  readonly topK?: number;
  readonly minP?: number;
  readonly typicalP?: number;
  readonly topNSigma?: number;
  readonly minKeep?: number;
  readonly repeatPenalty?: number;
  /** How many of the last tokens the three penalties look at; -1 is all of the context. */
  readonly repeatLastN?: number;
  readonly frequencyPenalty?: number;
  readonly presencePenalty?: number;
  readonly dry?: {
    readonly multiplier: number;
    readonly base: number;
    readonly allowedLength: number;
    readonly penaltyLastN: number;
    readonly sequenceBreakers: readonly string[];
  };
  readonly xtc?: { readonly probability: number; readonly threshold: number };
  readonly mirostat?: { readonly version: 1 | 2; readonly tau: number; readonly eta: number };
  readonly dynamicTemperature?: { readonly range: number; readonly exponent: number };
  /** [token id, bias]; a bias of -Infinity, sent as null, bans the token. */
  readonly logitBias?: readonly (readonly [number, number | null])[];
}

/** One prompt and the answers wanted to it. */
export interface GenerateRequest {
  readonly id: string;
  readonly promptTokens: readonly number[];
  readonly choices: readonly GenerateChoice[];
  /** Output tokens of each choice at most, those it already has included. */
  readonly maxTokens: number;
  readonly sampling: SamplingParameters;
  readonly topLogprobs?: number;
  readonly ignoreEndOfGeneration: boolean;
  readonly salt: string;
  /** Was accepted before, by an engine that is gone: the queue's limits do not apply again. */
  readonly isResubmission?: boolean;
}

export interface GenerateChoice {
  readonly index: number;
  /** A whole number of 32 bits, without a sign. */
  readonly seed: number;
  /** Not empty when the choice continues after its engine was lost. */
  readonly outputTokens: readonly number[];
}

/** What an engine process is told to load. Everything is resolved: nothing is `auto` except where the engine alone can know. */
export interface EngineSettings {
  readonly modelPath: string;
  readonly backend: "auto" | "cpu" | "cuda" | "metal" | "vulkan";
  /** `bundled`, or a folder with a user's own build of the same llama.cpp release. */
  readonly libraries: string;
  readonly threads: number | "auto";
  readonly gpuLayers: number | "auto";
  readonly flashAttention: boolean | "auto";
  readonly kvLayout: "auto" | "streams" | "unified";
  readonly kvTokens: number | "auto";
  readonly kvPageTokens: number;
  readonly kvType: "f16" | "q8_0" | "q4_0";
  readonly maxSequences: number | "auto";
  readonly maxBatchTokens: number;
  readonly maxQueuedRequests: number;
  readonly maxQueuedTokens: number | "auto";
  readonly sharePrefixes: boolean;
  /** The part of the machine's cores and memory that an `auto` value may count on: above 0 and at most 1, which it is when absent. */
  readonly machineShare?: number;
}

/** A piece of text to tokenize. `parseSpecial`: spellings of control tokens in it become those tokens. */
export interface TextSegment {
  readonly text: string;
  readonly parseSpecial: boolean;
}

export type ToEngine =
  | { readonly type: "load"; readonly protocolVersion: number; readonly settings: EngineSettings }
  | { readonly type: "submit"; readonly request: GenerateRequest }
  | { readonly type: "cancel"; readonly request: string; readonly index: number }
  | { readonly type: "tokenize"; readonly id: number; readonly segments: readonly TextSegment[]; readonly addSpecial: boolean }
  | { readonly type: "shutdown" };

export type FromEngine =
  | { readonly type: "hello"; readonly protocolVersion: number; readonly pid: number }
  | { readonly type: "loading"; readonly progress: number }
  | { readonly type: "ready"; readonly model: ModelInfo; readonly engine: EngineInfo }
  | { readonly type: "loadFailed"; readonly error: WireError }
  /** The request is in the queue; only now may the client's stream begin. */
  | { readonly type: "accepted"; readonly request: string }
  | { readonly type: "refused"; readonly request: string; readonly error: WireError }
  | { readonly type: "tokenized"; readonly id: number; readonly tokens: readonly (readonly number[])[] }
  | { readonly type: "tokenizeFailed"; readonly id: number; readonly error: WireError }
  | StepMessage
  | { readonly type: "fatal"; readonly error: WireError };

/** All news of one step: one message whatever the number of sequences. */
export interface StepMessage {
  readonly type: "step";
  readonly events: readonly ChoiceEvent[];
  readonly stats: EngineStats;
}

export interface ChoiceEvent {
  readonly request: string;
  readonly index: number;
  readonly token?: number;
  readonly logprob?: TokenLogprob;
  readonly finish?: FinishReason;
  readonly error?: WireError;
  readonly started?: { readonly queueMs: number; readonly cachedTokens: number };
}

export interface EngineStats extends SchedulerStats {
  readonly steps: number;
  /** Of the step that this message reports. */
  readonly stepMs: number;
  readonly decodeRows: number;
  readonly prefillTokens: number;
  readonly residentBytes: number;
}

/** What the gateway must know of a model; the vocabulary is enough to turn tokens into bytes without the engine. */
export interface ModelInfo {
  readonly name: string;
  readonly description: string;
  readonly architecture: string;
  readonly sizeBytes: number;
  readonly parameterCount: number;
  readonly vocabularySize: number;
  readonly embeddingSize: number;
  readonly trainedContextTokens: number;
  readonly fileType: string;
  /** The GGUF's own Jinja template, if it has one. */
  readonly chatTemplate: string | undefined;
  readonly tokens: VocabularyInfo;
  /** Whether the tail of a cached sequence can be dropped; not so for recurrent, hybrid and sliding-window models. */
  readonly canTrim: boolean;
}

export interface VocabularyInfo {
  readonly type: "none" | "spm" | "bpe" | "wpm" | "ugm" | "rwkv" | "plamo2" | "other";
  /** All tokens' bytes one after another, in base64; control tokens have no bytes. */
  readonly pieces: string;
  /** Length of each token's bytes, in the order of ids, as base64 of little-endian uint16. */
  readonly pieceLengths: string;
  /** Control tokens, which only the template may produce. `lstrip`/`rstrip`: white space on that side belongs to the token. */
  readonly special: readonly { readonly id: number; readonly text: string; readonly lstrip: boolean; readonly rstrip: boolean }[];
  readonly endOfGeneration: readonly number[];
  readonly bos: { readonly id: number; readonly text: string } | undefined;
  readonly eos: { readonly id: number; readonly text: string } | undefined;
  readonly addBos: boolean;
  readonly addEos: boolean;
  /** The decoder drops the first space of a text that it put there itself (SentencePiece). */
  readonly addSpacePrefix: boolean;
}

/** What the engine settled on. */
export interface EngineInfo {
  readonly llamaVersion: string;
  readonly ggmlCommit: string;
  readonly backend: string;
  readonly devices: readonly string[];
  readonly threads: number;
  readonly gpuLayers: number;
  readonly kvLayout: "streams" | "unified";
  readonly kvTokens: number;
  readonly kvBytes: number;
  readonly modelBytes: number;
  readonly pageTokens: number;
  readonly maxSequences: number;
  readonly maxBatchTokens: number;
  /** Prompt and output of one request at most. */
  readonly contextTokens: number;
}
