/** Additions to the logits of single tokens: a request's biases and bans. */
import type { SamplingParameters } from "../protocol.js";

export interface LogitBiases {
  readonly isEmpty: boolean;
  bans(token: number): boolean;
  /** Adds the biases in place and returns what takes them back. */
  apply(logits: Float32Array): () => void;
}

/** Tokens out of the vocabulary are ignored; of several entries for one token the last one counts, and a ban beats any bias. */
export function createLogitBiases(biases: SamplingParameters["logitBias"], banned: Iterable<number>, vocabularySize: number): LogitBiases {
  const byToken = new Map<number, number>();
  for (const [token, bias] of biases ?? []) byToken.set(token, bias ?? -Infinity);
  for (const token of banned) byToken.set(token, -Infinity);
  const entries = [...byToken].filter(([token]) => Number.isInteger(token) && token >= 0 && token < vocabularySize);
  const saved = new Float32Array(entries.length);
  return {
    isEmpty: entries.length === 0,
    bans: (token) => byToken.get(token) === -Infinity,
    apply(logits) {
      entries.forEach(([token, bias], index) => {
        saved[index] = logits[token] as number;
        logits[token] = (saved[index] as number) + bias;
      });
      return () => {
        entries.forEach(([token], index) => {
          logits[token] = saved[index] as number;
        });
      };
    },
  };
}
