/** The order in which texts are tokenized: short ones beside long ones, never behind them. */
import type { TextSegment } from "../protocol.js";
import { limited } from "./limited.js";

/** Characters up to which texts are short: those take about ten milliseconds together, where megabytes take seconds. */
export const shortCharacters = 8192;

// The thread pool, which has four threads, must always have one for the next step.
const concurrentShort = 2;
const concurrentLong = 1;

export type TokenizeSegments = (segments: readonly TextSegment[], addSpecial: boolean) => Promise<readonly (readonly number[])[]>;

/** The same function with two lanes, each in the order of arrival: long texts are tokenized one at a time, and short ones do not wait for them. */
export function inLanes(tokenize: TokenizeSegments): TokenizeSegments {
  const short = limited(concurrentShort, tokenize);
  const long = limited(concurrentLong, tokenize);
  return (segments, addSpecial) => {
    const characters = segments.reduce((sum, { text }) => sum + text.length, 0);
    return (characters <= shortCharacters ? short : long)(segments, addSpecial);
  };
}
