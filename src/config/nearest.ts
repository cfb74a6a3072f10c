/** Which known name a mistyped one was meant to be. */

/** The known name that takes the fewest edits to reach, when it takes few enough to be a likely slip. */
export function nearestName(given: string, known: readonly string[]): string | undefined {
  const ranked = known.map((name) => ({ name, edits: editDistance(given.toLowerCase(), name.toLowerCase()) })).sort((a, b) => a.edits - b.edits);
  const best = ranked[0];
  return best !== undefined && best.edits <= likelySlips(given) ? best.name : undefined;
}

/** With more than one slip in four letters the two words only happen to share some. */
function likelySlips(given: string): number {
  return Math.max(1, Math.floor(given.length / 4));
}

/** Insertions, deletions, replacements and swaps of neighbours that turn one text into the other. */
export function editDistance(from: string, to: string): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const isSame = from[row - 1] === to[column - 1];
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      current[column] = Math.min(
        (last[column] ?? 0) + 1,
        (current[column - 1] ?? 0) + 1,
        (last[column - 1] ?? 0) + (isSame ? 0 : 1),
        isSwap ? (beforeLast[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    beforeLast = last;
    last = current;
  }
  return last[to.length] ?? 0;
}
