/** Sums and draws over the exponentials of a whole vocabulary, without Math.exp: fast enough to do for every token. */
import { argmax } from "./largest.js";

// e^x = 2^(-n/32) * 2^(f/32), with n whole and f between -0.5 and 0.5: a table for the one, a polynomial for the other, right to about nine digits.
// Finer steps would save a term, but their table would not stay in the processor's nearest cache.
const stepsPerOctave = 32;
const mostSteps = 126 * stepsPerOctave;
const powersOfTwo = Float64Array.from({ length: mostSteps + 2 }, (_, n) => 2 ** (-n / stepsPerOctave));
const stepsPerUnit = stepsPerOctave * Math.LOG2E;
const [c1, c2, c3] = [1 / stepsPerUnit, 1 / stepsPerUnit ** 2 / 2, 1 / stepsPerUnit ** 3 / 6];

/** e^x for x of at most 0; 0 below e^-87 and for NaN. */
export function expOfNegative(x: number): number {
  const y = x * stepsPerUnit;
  if (!(y > -mostSteps)) return 0;
  const n = (0.5 - y) | 0;
  const f = y + n;
  return (powersOfTwo[n] as number) * (1 + f * (c1 + f * (c2 + f * c3)));
}

/** The sum of e^(logit - largest) over all tokens; `largest` must be the largest logit. */
export function sumOfExponentials(logits: Float32Array, largest: number): number {
  let sum = 0;
  for (let index = 0; index < logits.length; index++) sum += expOfNegative((logits[index] as number) - largest);
  return sum;
}

export interface SoftmaxDraw {
  /** The token at `fraction` (0 to 1, 1 excluded) of the probability mass in order of ids; -1 when no token has any. */
  draw(logits: Float32Array, temperature: number, fraction: number): number;
}

const blockTokens = 1024;

/** Draws from vocabularies of one size; keeps room for their weights. */
export function createSoftmaxDraw(vocabularySize: number): SoftmaxDraw {
  const weights = new Float64Array(vocabularySize);
  const blockSums = new Float64Array(Math.ceil(vocabularySize / blockTokens));

  /** Fills weights and block sums; returns their total. */
  function weigh(logits: Float32Array, temperature: number): number {
    const likeliest = argmax(logits);
    if (likeliest < 0) return 0;
    const largest = logits[likeliest] as number;
    const scale = 1 / temperature;
    let total = 0;
    for (let block = 0; block < blockSums.length; block++) {
      const end = Math.min(logits.length, (block + 1) * blockTokens);
      let sum = 0;
      for (let index = block * blockTokens; index < end; index++) {
        const weight = expOfNegative(((logits[index] as number) - largest) * scale);
        weights[index] = weight;
        sum += weight;
      }
      blockSums[block] = sum;
      total += sum;
    }
    return total;
  }

  return {
    draw(logits, temperature, fraction) {
      let remaining = weigh(logits, temperature) * fraction;
      let block = 0;
      while (block < blockSums.length - 1 && remaining >= (blockSums[block] as number)) remaining -= blockSums[block++] as number;
      let last = -1;
      // Rounding may leave a little more than the block holds; then its last possible token is meant.
      for (let index = block * blockTokens; index < logits.length; index++) {
        const weight = weights[index] as number;
        if (weight === 0) continue;
        if (remaining < weight) return index;
        remaining -= weight;
        last = index;
      }
      return last >= 0 ? last : argmaxOf(weights);
    },
  };
}

function argmaxOf(weights: Float64Array): number {
  let best = -1;
  let largest = 0;
  for (let index = 0; index < weights.length; index++) {
    if ((weights[index] as number) > largest) {
      largest = weights[index] as number;
      best = index;
    }
  }
  return best;
}
