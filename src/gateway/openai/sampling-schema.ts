/** The request fields that say how tokens are drawn, and what they become for the engine. */
import { randomInt } from "node:crypto";
import { z } from "zod";
import type { SamplingConfig } from "../../config/sampling-profile.js";
import type { SamplingParameters } from "../../engine/client/engine-client.js";
import { boolean, integer, list, number, numberFrom, optional, text } from "./fields.js";
import { logitBias } from "./logit-bias.js";

const seeds = 2 ** 32;
const maxBreakers = 64;
const breaker = text(1000).min(1, "must not be empty");

/** OpenAI's fields and llama-server's. */
export const samplingFields = {
  temperature: optional(number(0, 2)),
  top_p: optional(number(0, 1)),
  frequency_penalty: optional(number(-2, 2)),
  presence_penalty: optional(number(-2, 2)),
  seed: optional(integer(Number.MIN_SAFE_INTEGER)),
  logit_bias: optional(logitBias),
  top_k: optional(integer(-1, 2 ** 31 - 1)),
  min_p: optional(number(0, 1)),
  typical_p: optional(number(0, 1)),
  top_n_sigma: optional(numberFrom(-1)),
  min_keep: optional(integer(0, 2 ** 31 - 1)),
  repeat_penalty: optional(number(0.01, 100)),
  repeat_last_n: optional(integer(-1, 2 ** 31 - 1)),
  dry_multiplier: optional(number(0, 100)),
  dry_base: optional(number(1, 100)),
  dry_allowed_length: optional(integer(0, 2 ** 31 - 1)),
  dry_penalty_last_n: optional(integer(-1, 2 ** 31 - 1)),
  dry_sequence_breakers: optional(list(breaker, maxBreakers, `must be an array of at most ${maxBreakers} strings`)),
  xtc_probability: optional(number(0, 1)),
  xtc_threshold: optional(number(0, 1)),
  mirostat: optional(integer(0, 2)),
  mirostat_tau: optional(number(0, 100)),
  mirostat_eta: optional(number(0, 1)),
  dynatemp_range: optional(number(0, 100)),
  dynatemp_exponent: optional(number(0, 100)),
  ignore_eos: optional(boolean()),
};

const samplingSchema = z.object(samplingFields);
export type SamplingFields = z.output<typeof samplingSchema>;

/** The engine's parameters for a request, with the configured values where it is silent. What has no effect is left out. */
export function samplingParameters(
  fields: SamplingFields,
  defaults: SamplingConfig,
  logitBias: readonly (readonly [number, number | null])[],
): SamplingParameters {
  const topP = fields.top_p ?? defaults.topP;
  const topK = fields.top_k ?? defaults.topK;
  const minP = fields.min_p ?? defaults.minP;
  const typicalP = fields.typical_p ?? defaults.typicalP;
  const topNSigma = fields.top_n_sigma ?? -1;
  const minKeep = fields.min_keep ?? 0;
  return {
    temperature: fields.temperature ?? defaults.temperature,
    ...(topP < 1 && { topP }),
    ...(topK > 0 && { topK }),
    ...(minP > 0 && { minP }),
    ...(typicalP < 1 && { typicalP }),
    ...(topNSigma >= 0 && { topNSigma }),
    ...(minKeep > 0 && { minKeep }),
    ...penalties(fields, defaults),
    ...dry(fields),
    ...alternativeSamplers(fields),
    ...(logitBias.length > 0 && { logitBias }),
  };
}

function penalties(fields: SamplingFields, defaults: SamplingConfig): Partial<SamplingParameters> {
  const repeatLastN = fields.repeat_last_n ?? defaults.repeatLastN;
  const repeatPenalty = fields.repeat_penalty ?? defaults.repeatPenalty;
  const frequencyPenalty = fields.frequency_penalty ?? defaults.frequencyPenalty;
  const presencePenalty = fields.presence_penalty ?? defaults.presencePenalty;
  const hasEffect = repeatLastN !== 0 && (repeatPenalty !== 1 || frequencyPenalty !== 0 || presencePenalty !== 0);
  return hasEffect ? { repeatPenalty, repeatLastN, frequencyPenalty, presencePenalty } : {};
}

// The values of llama-server where a request that uses one of these samplers is silent.
function dry(fields: SamplingFields): Partial<SamplingParameters> {
  const multiplier = fields.dry_multiplier ?? 0;
  if (multiplier === 0) return {};
  return {
    dry: {
      multiplier,
      base: fields.dry_base ?? 1.75,
      allowedLength: fields.dry_allowed_length ?? 2,
      penaltyLastN: fields.dry_penalty_last_n ?? -1,
      sequenceBreakers: fields.dry_sequence_breakers ?? ["\n", ":", '"', "*"],
    },
  };
}

function alternativeSamplers(fields: SamplingFields): Partial<SamplingParameters> {
  const { mirostat = 0, xtc_probability: xtcProbability = 0, dynatemp_range: range = 0 } = fields;
  return {
    ...(xtcProbability > 0 && { xtc: { probability: xtcProbability, threshold: fields.xtc_threshold ?? 0.1 } }),
    ...(mirostat !== 0 && { mirostat: { version: mirostat === 1 ? 1 : 2, tau: fields.mirostat_tau ?? 5, eta: fields.mirostat_eta ?? 0.1 } as const }),
    ...(range > 0 && { dynamicTemperature: { range, exponent: fields.dynatemp_exponent ?? 1 } }),
  };
}

/** The seeds of a request's choices: different ones, the same for the same `seed`. Absent or -1 is random. */
export function choiceSeeds(seed: number | undefined, defaultSeed: number | undefined, choices: number): number[] {
  const given = seed === undefined ? defaultSeed : seed === -1 ? undefined : seed;
  const first = given ?? randomInt(seeds);
  return Array.from({ length: choices }, (_, index) => (((first + index) % seeds) + seeds) % seeds);
}
