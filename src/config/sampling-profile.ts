/** What a request is sampled with when it does not say: two sets of habits, and a user's own values over them. */

/** Sampling defaults with every value filled in. */
export interface SamplingConfig {
  readonly profile: "openai" | "llama";
  /** 0 takes the likeliest token. */
  readonly temperature: number;
  /** 1 is off. */
  readonly topP: number;
  /** 0 and -1 are off. */
  readonly topK: number;
  /** 0 is off. */
  readonly minP: number;
  /** 1 is off. */
  readonly typicalP: number;
  /** 1 is off. */
  readonly repeatPenalty: number;
  /** How many of the last tokens the penalties look at; 0 is none, -1 all of the context. */
  readonly repeatLastN: number;
  /** 0 is off. */
  readonly frequencyPenalty: number;
  /** 0 is off. */
  readonly presencePenalty: number;
  /** Output tokens of one answer at most; undefined leaves only the context as a limit. */
  readonly maxTokens: number | undefined;
  /** undefined draws a new one for each request. */
  readonly seed: number | undefined;
}

/** Sampling values that a user set; the others follow the profile. */
export type SamplingChoices = Pick<SamplingConfig, "profile" | "maxTokens" | "seed"> & {
  readonly [Name in ProfiledName]?: number | undefined;
};

export type ProfiledName = Exclude<keyof SamplingConfig, "profile" | "maxTokens" | "seed">;

type Profile = { readonly [Name in ProfiledName]: number };

const everythingOff: Profile = {
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  typicalP: 1,
  repeatPenalty: 1,
  repeatLastN: 64,
  frequencyPenalty: 0,
  presencePenalty: 0,
};

/** `openai`: the plain distribution, as OpenAI's API does. `llama`: llama-server's defaults. */
export const samplingProfiles: { readonly [Name in SamplingConfig["profile"]]: Profile } = {
  openai: everythingOff,
  llama: { ...everythingOff, temperature: 0.8, topP: 0.95, topK: 40, minP: 0.05 },
};

/** The profile's values with the user's own over them. */
export function resolveSampling(chosen: SamplingChoices): SamplingConfig {
  const profile = samplingProfiles[chosen.profile];
  return {
    profile: chosen.profile,
    temperature: chosen.temperature ?? profile.temperature,
    topP: chosen.topP ?? profile.topP,
    topK: chosen.topK ?? profile.topK,
    minP: chosen.minP ?? profile.minP,
    typicalP: chosen.typicalP ?? profile.typicalP,
    repeatPenalty: chosen.repeatPenalty ?? profile.repeatPenalty,
    repeatLastN: chosen.repeatLastN ?? profile.repeatLastN,
    frequencyPenalty: chosen.frequencyPenalty ?? profile.frequencyPenalty,
    presencePenalty: chosen.presencePenalty ?? profile.presencePenalty,
    maxTokens: chosen.maxTokens,
    seed: chosen.seed,
  };
}
