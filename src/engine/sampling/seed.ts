/** Seeds for single draws: the draw of one output position depends on the request's seed and that position alone. */

/** llama.cpp takes this seed as "choose one at random". */
const randomSeed = 0xffffffff;

/** What chance is used for at a position: the token itself (with two halves where one number has too few bits), or XTC. */
type Use = "token" | "fraction" | "xtc";

const useSalts: Readonly<Record<Use, number>> = { token: 0, fraction: 0x165667b1, xtc: 0x27d4eb2f };

/**
 * A 32-bit seed for one use of chance at one output position. `seed`: of 32 bits, as the gateway makes every request's. Because nothing else enters it, a sequence draws the same tokens
 * after it was preempted or continued in another engine.
 */
export function drawSeed(seed: number, position: number, use: Use): number {
  let hash = mix(mix(seed) ^ Math.imul(position + 1, 0x9e3779b1));
  if (use !== "token") hash = mix(hash ^ useSalts[use]);
  const result = hash >>> 0;
  return result === randomSeed ? 0 : result;
}

/** A number from 0 to 1 (1 excluded) with 53 random bits, for one output position. */
export function drawFraction(seed: number, position: number): number {
  const high = drawSeed(seed, position, "token") >>> 5;
  const low = drawSeed(seed, position, "fraction") >>> 6;
  return (high * 2 ** 26 + low) / 2 ** 53;
}

/** The finalizer of MurmurHash3: every bit of the input changes about half of the output's. */
function mix(value: number): number {
  let hash = value;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return hash ^ (hash >>> 16);
}
