/** The shapes a random model can have: presets with the proportions of models that people run, and the rules that any shape must obey. */

export interface ModelShape {
  readonly layers: number;
  /** Length of a token's vector. */
  readonly width: number;
  readonly heads: number;
  /** Heads of keys and values, each shared by `heads / kvHeads` heads. */
  readonly kvHeads: number;
  /** Width of the feed-forward part. */
  readonly feedForward: number;
  /** Context that the file claims to be trained for, in tokens. */
  readonly contextTokens: number;
}

export const presets: Readonly<Record<string, ModelShape & { readonly like: string }>> = {
  tiny: { layers: 2, width: 64, heads: 4, kvHeads: 2, feedForward: 128, contextTokens: 2048, like: "nothing: for tests" },
  "135m": { layers: 30, width: 576, heads: 9, kvHeads: 3, feedForward: 1536, contextTokens: 8192, like: "SmolLM 135M" },
  "360m": { layers: 32, width: 960, heads: 15, kvHeads: 5, feedForward: 2560, contextTokens: 8192, like: "SmolLM 360M" },
  "0.5b": { layers: 24, width: 896, heads: 14, kvHeads: 2, feedForward: 4864, contextTokens: 32768, like: "Qwen2 0.5B" },
  "1b": { layers: 16, width: 2048, heads: 32, kvHeads: 8, feedForward: 8192, contextTokens: 131072, like: "Llama 3.2 1B" },
  "3b": { layers: 28, width: 3072, heads: 24, kvHeads: 8, feedForward: 8192, contextTokens: 131072, like: "Llama 3.2 3B" },
  "8b": { layers: 32, width: 4096, heads: 32, kvHeads: 8, feedForward: 14336, contextTokens: 131072, like: "Llama 3.1 8B" },
};

/** Why llama.cpp could not run a model of this shape in this type; undefined when it can. */
export function shapeProblem(shape: ModelShape, rowWeightsMultiple: number): string | undefined {
  const { width, heads, kvHeads, feedForward } = shape;
  if (width % heads !== 0) return `a width of ${width} cannot be divided among ${heads} heads.`;
  if (heads % kvHeads !== 0) return `${heads} heads cannot share ${kvHeads} KV heads evenly.`;
  if ((width / heads) % 2 !== 0) return `a head of ${width / heads} weights is odd; rotary positions need pairs.`;
  if (width % rowWeightsMultiple !== 0) return `the width ${width} is no multiple of ${rowWeightsMultiple}, the block size of the type.`;
  if (feedForward % rowWeightsMultiple !== 0)
    return `the feed-forward width ${feedForward} is no multiple of ${rowWeightsMultiple}, the block size of the type.`;
  return undefined;
}
