/** Chooses a sequence's next token from its logits. */
import { logitsNotFinite, noTokenLeft } from "../../errors.js";
import type { TokenLogprob } from "../../scheduler/step-plan.js";
import type { SequenceStart } from "../executor/executor.js";
import type { LlamaContext } from "../llama/context.js";
import { createChain, needsChain } from "./chain.js";
import { createDryCache } from "./dry-cache.js";
import { argmax } from "./largest.js";
import { createLogitBiases, type LogitBiases } from "./logit-biases.js";
import { tokenLogprobs } from "./logprobs.js";
import { drawFraction } from "./seed.js";
import { createSoftmaxDraw } from "./softmax.js";
import { computableTemperature } from "./temperature.js";

export interface SampledToken {
  readonly token: number;
  readonly logprob?: TokenLogprob;
}

export interface Sampler {
  /**
   * The next token, from row `output` of the logits, which are those of the batch's token `batchIndex`.
   * Throws coded errors: the logits are not numbers, or every token is banned.
   */
  sample(batchIndex: number, output: number): SampledToken;
  free(): void;
}

export interface SamplerFactory {
  create(start: SequenceStart): Sampler;
  free(): void;
}

/** Chooses from logits that carry the request's biases. */
type Choose = (logits: Float32Array, batchIndex: number, position: number) => number;

/** Makes samplers for the sequences of one context. */
export function createSamplerFactory(context: LlamaContext): SamplerFactory {
  const { model } = context;
  const dry = createDryCache(model);
  const softmax = createSoftmaxDraw(model.vocabularySize);

  function chooserOf({ seed, promptTokens, outputTokens, ...start }: SequenceStart): { choose: Choose; free: () => void } {
    const sampling = computableTemperature(start.sampling);
    if (needsChain(sampling)) {
      const tokens = { prompt: promptTokens, output: outputTokens };
      const chain = createChain(model, dry, { sampling, seed, contextTokens: context.sequenceTokens, tokens });
      return { choose: (_, batchIndex, position) => chain.draw(context, batchIndex, position), free: chain.free };
    }
    const { temperature } = sampling;
    if (temperature <= 0) return { choose: argmax, free() {} };
    return { choose: (logits, _, position) => softmax.draw(logits, temperature, drawFraction(seed, position)), free() {} };
  }

  return {
    create(start) {
      const banned = start.ignoreEndOfGeneration ? [...model.suppressed, ...model.endOfGeneration] : model.suppressed;
      const biases = createLogitBiases(start.sampling.logitBias, banned, model.vocabularySize);
      const { choose, free } = chooserOf(start);
      return { sample: sampleWith(context, start, biases, choose), free };
    },
    free: dry.free,
  };
}

function sampleWith(context: LlamaContext, { outputTokens, topLogprobs }: SequenceStart, biases: LogitBiases, choose: Choose): Sampler["sample"] {
  let position = outputTokens.length;
  return (batchIndex, output) => {
    const logits = context.logits(output);
    // Where numbers break down they do so in the whole row. llama.cpp's sorts must not see a NaN.
    if (Number.isNaN(logits[0]) || Number.isNaN(logits[logits.length - 1])) throw logitsNotFinite({});
    const restore = biases.apply(logits);
    const token = choose(logits, batchIndex, position);
    const chosen = logits[token];
    restore();
    if (chosen === undefined || !Number.isFinite(chosen)) throw biases.isEmpty ? logitsNotFinite({}) : noTokenLeft({});
    position++;
    return topLogprobs === undefined ? { token } : { token, logprob: tokenLogprobs(logits, token, topLogprobs) };
  };
}
