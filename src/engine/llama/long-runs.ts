/** Cuts text that would make the tokenizer recurse too deep. Pure. */

/**
 * Characters of a run at most. Some vocabularies split text with std::regex, which recurses once per character of a match:
 * about 300 bytes of stack each, so a match of this length is safe on the stack that native calls get, with room to spare.
 */
export const longestRun = 16_384;

/** How far before that limit a better place to cut is looked for. */
const searchBack = 1024;

/**
 * The text in pieces, in each of which no run is longer than `limit`. A run goes from one word's beginning to the next's:
 * no pattern matches across one. Ordinary text is one piece; what is cut (long base64, say) gets at most one other token at each cut.
 */
export function cutLongRuns(text: string, limit: number = longestRun): string[] {
  const pieces: string[] = [];
  let pieceStart = 0;
  let runStart = 0;
  for (let index = 1; index < text.length; index++) {
    if (!isSpace(text.charCodeAt(index)) && isSpace(text.charCodeAt(index - 1))) runStart = index;
    if (index - runStart < limit) continue;
    const cut = placeToCut(text, runStart, index);
    pieces.push(text.slice(pieceStart, cut));
    pieceStart = cut;
    runStart = cut;
  }
  pieces.push(text.slice(pieceStart));
  return pieces;
}

/** White space that every pattern knows; a space of another kind is taken for a letter, which only makes runs longer. */
function isSpace(unit: number): boolean {
  return unit === 32 || (unit >= 9 && unit <= 13);
}

const wordCharacter = /[\p{L}\p{N}\p{M}\p{Cs}'’]/u;

/** Where a word ends, if there is such a place nearby: every pattern ends a match there. Otherwise the limit, but never inside a surrogate pair. */
function placeToCut(text: string, runStart: number, limit: number): number {
  for (let index = limit; index > Math.max(runStart + 1, limit - searchBack); index--) {
    if (/\p{L}/u.test(text.charAt(index - 1)) && !wordCharacter.test(text.charAt(index))) return index;
  }
  const splitsPair = (text.charCodeAt(limit) & 0xfc00) === 0xdc00 && (text.charCodeAt(limit - 1) & 0xfc00) === 0xd800;
  return splitsPair ? limit - 1 : limit;
}
