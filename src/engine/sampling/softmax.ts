/** Sums and draws over the exponentials of a whole vocabulary, without Math.exp: fast enough to do for every token. */

// e^x = 2^-n * 2^f, with n whole and f between -0.5 and 0.5: a table for the one, a polynomial for the other, right to about eight digits.
const smallestExponent = 126;
const powersOfTwo = Float64Array.from({ length: smallestExponent + 2 }, (_, n) => 2 ** -n);
const log2 = Math.LN2;
const [c1, c2, c3, c4, c5, c6, c7] = [log2, log2 ** 2 / 2, log2 ** 3 / 6, log2 ** 4 / 24, log2 ** 5 / 120, log2 ** 6 / 720, log2 ** 7 / 5040];

/** e^x for x of at most 0; 0 below e^-87 and for NaN. */
export function expOfNegative(x: number): number {
  const y = x * Math.LOG2E;
  if (!(y > -smallestExponent)) return 0;
  const n = (0.5 - y) | 0;
  const f = y + n;
  return (powersOfTwo[n] as number) * (1 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * (c6 + f * c7)))))));
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
    let largest = -Infinity;
    for (let index = 0; index < logits.length; index++) if ((logits[index] as number) > largest) largest = logits[index] as number;
    if (largest === -Infinity) return 0;
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
