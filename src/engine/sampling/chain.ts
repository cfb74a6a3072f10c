/** llama.cpp's samplers in a chain, for whatever is more than taking the likeliest token. */
import type { LlamaContext } from "../llama/context.js";
import type { Native, SamplerPointer } from "../llama/functions.js";
import type { LlamaModel } from "../llama/model.js";
import type { SamplingParameters } from "../protocol.js";
import type { DryCache } from "./dry-cache.js";
import { drawSeed } from "./seed.js";

export interface ChainStart {
  readonly sampling: SamplingParameters;
  readonly seed: number;
  /** Tokens of a sequence at most: what "all of the context" means for the penalties. */
  readonly contextTokens: number;
  readonly tokens: TokenHistory;
}

/** A sequence's tokens, prompt and output, as far as they are known when sampling begins. */
export interface TokenHistory {
  readonly prompt: Int32Array;
  readonly output: readonly number[];
}

export interface SamplerChain {
  /** Draws from the logits of the batch's token `batchIndex`, for output position `position`, and remembers the token. */
  draw(context: LlamaContext, batchIndex: number, position: number): number;
  free(): void;
}

/** Whether the parameters need a chain: neither the likeliest token nor a draw from the whole distribution is all that they ask for. */
export function needsChain(sampling: SamplingParameters): boolean {
  if (hasPenalties(sampling) || hasDry(sampling)) return true;
  return sampling.temperature > 0 && (hasTruncation(sampling) || sampling.mirostat !== undefined || (sampling.dynamicTemperature?.range ?? 0) !== 0);
}

function hasTruncation({ topNSigma = 0, topK = 0, typicalP = 1, topP = 1, minP = 0, xtc }: SamplingParameters): boolean {
  return topNSigma > 0 || topK > 0 || typicalP < 1 || topP < 1 || minP > 0 || (xtc !== undefined && xtc.probability > 0);
}

/**
 * The order is llama-server's: penalties, DRY, top-nσ, top-k, typical-p, top-p, min-p, XTC, temperature, then the draw.
 * Mirostat stands for everything after the penalties; it carries a state of its own, so a continued sequence may go on differently.
 */
export function createChain(model: LlamaModel, dry: DryCache, { sampling, seed, contextTokens, tokens }: ChainStart): SamplerChain {
  const { native } = model.llama;
  const chain = native.llama_sampler_chain_init({ no_perf: true });
  const add = (sampler: SamplerPointer) => native.llama_sampler_chain_add(chain, sampler);
  const free = () => native.llama_sampler_free(chain);
  try {
    const windowTokens = addPenalties(model, dry, add, sampling, contextTokens);
    const reseed = addDraw(native, chain, model.vocabularySize, sampling, seed);
    for (const token of lastTokens(tokens, windowTokens)) native.llama_sampler_accept(chain, token);
    return {
      draw(context, batchIndex, position) {
        reseed(position);
        return native.llama_sampler_sample(chain, context.pointer, batchIndex);
      },
      free,
    };
  } catch (error) {
    free();
    throw error;
  }
}

function hasPenalties({ repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0, repeatLastN = -1 }: SamplingParameters): boolean {
  return repeatLastN !== 0 && (repeatPenalty !== 1 || frequencyPenalty !== 0 || presencePenalty !== 0);
}

function hasDry({ dry }: SamplingParameters): boolean {
  return dry !== undefined && dry.multiplier !== 0 && dry.base >= 1 && dry.penaltyLastN !== 0;
}

/** Adds what looks back at earlier tokens; returns how many of them it looks at. */
function addPenalties(model: LlamaModel, dry: DryCache, add: (sampler: SamplerPointer) => void, sampling: SamplingParameters, contextTokens: number): number {
  const window = (lastN: number) => (lastN < 0 ? contextTokens : Math.min(lastN, contextTokens));
  let windowTokens = 0;
  if (hasPenalties(sampling)) {
    const lastN = window(sampling.repeatLastN ?? -1);
    const { repeatPenalty = 1, frequencyPenalty = 0, presencePenalty = 0 } = sampling;
    add(model.llama.native.llama_sampler_init_penalties(model.vocabularySize, lastN, repeatPenalty, frequencyPenalty, presencePenalty));
    windowTokens = lastN;
  }
  if (sampling.dry !== undefined && hasDry(sampling)) {
    const lastN = window(sampling.dry.penaltyLastN);
    add(dry.create(sampling.dry, lastN));
    windowTokens = Math.max(windowTokens, lastN);
  }
  return windowTokens;
}

type Reseed = (position: number) => void;

/** Adds what chooses the token. The result prepares the chain's chance for one position. */
function addDraw(native: Native, chain: SamplerPointer, vocabularySize: number, sampling: SamplingParameters, seed: number): Reseed {
  const added: SamplerPointer[] = [];
  const add = (sampler: SamplerPointer) => {
    native.llama_sampler_chain_add(chain, sampler);
    added.push(sampler);
  };
  const { temperature, mirostat } = sampling;
  if (temperature <= 0) {
    add(native.llama_sampler_init_greedy());
    return () => {};
  }
  if (mirostat !== undefined) {
    const firstSeed = drawSeed(seed, 0, "token");
    add(native.llama_sampler_init_temp(temperature));
    if (mirostat.version === 1) add(native.llama_sampler_init_mirostat(vocabularySize, firstSeed, mirostat.tau, mirostat.eta, 100));
    else add(native.llama_sampler_init_mirostat_v2(firstSeed, mirostat.tau, mirostat.eta));
    return () => {};
  }
  addTruncation(native, add, sampling);
  return addSeeded(native, chain, sampling, seed);
}

function addTruncation(native: Native, add: (sampler: SamplerPointer) => void, sampling: SamplingParameters): void {
  const { topNSigma = 0, topK = 0, typicalP = 1, topP = 1, minP = 0, minKeep = 0 } = sampling;
  if (topNSigma > 0) add(native.llama_sampler_init_top_n_sigma(topNSigma));
  if (topK > 0) add(native.llama_sampler_init_top_k(topK));
  if (typicalP < 1) add(native.llama_sampler_init_typical(typicalP, minKeep));
  if (topP < 1) add(native.llama_sampler_init_top_p(topP, minKeep));
  if (minP > 0) add(native.llama_sampler_init_min_p(minP, minKeep));
}

/**
 * The end of the chain is made of XTC (if any), temperature and the draw. The two with chance in them are made anew for every position,
 * so that the draw depends on the seed and the position and not on how many draws came before in this engine.
 */
function addSeeded(native: Native, chain: SamplerPointer, sampling: SamplingParameters, seed: number): Reseed {
  const { temperature, dynamicTemperature, xtc, minKeep = 0 } = sampling;
  const hasXtc = xtc !== undefined && xtc.probability > 0;
  const addXtc = (position: number) => {
    if (hasXtc) native.llama_sampler_chain_add(chain, native.llama_sampler_init_xtc(xtc.probability, xtc.threshold, minKeep, drawSeed(seed, position, "xtc")));
  };
  const addDist = (position: number) => native.llama_sampler_chain_add(chain, native.llama_sampler_init_dist(drawSeed(seed, position, "token")));
  addXtc(0);
  native.llama_sampler_chain_add(chain, native.llama_sampler_init_temp_ext(temperature, dynamicTemperature?.range ?? 0, dynamicTemperature?.exponent ?? 1));
  addDist(0);
  const length = native.llama_sampler_chain_n(chain);
  return (position) => {
    native.llama_sampler_free(native.llama_sampler_chain_remove(chain, length - 1));
    if (hasXtc) {
      const temperatureSampler = native.llama_sampler_chain_remove(chain, length - 2);
      native.llama_sampler_free(native.llama_sampler_chain_remove(chain, length - 3));
      addXtc(position);
      native.llama_sampler_chain_add(chain, temperatureSampler);
    }
    addDist(position);
  };
}

function* lastTokens({ prompt, output }: TokenHistory, count: number): Generator<number> {
  const fromOutput = Math.min(count, output.length);
  const fromPrompt = Math.min(count - fromOutput, prompt.length);
  yield* prompt.subarray(prompt.length - fromPrompt);
  yield* output.slice(output.length - fromOutput);
}
