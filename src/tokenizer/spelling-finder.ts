/** Finds given spellings in a text, in time that does not depend on how many spellings there are. */

export interface Occurrence {
  readonly spelling: string;
  readonly start: number;
}

/** Returns a function that finds every occurrence of every spelling, overlapping ones too, by position. */
export function createSpellingFinder(spellings: readonly string[]): (text: string) => Occurrence[] {
  const known = new Set(spellings.filter((spelling) => spelling !== ""));
  const lengthsByFirstUnit = new Map<number, number[]>();
  for (const spelling of known) {
    const lengths = lengthsByFirstUnit.get(spelling.charCodeAt(0)) ?? [];
    if (!lengths.includes(spelling.length)) lengthsByFirstUnit.set(spelling.charCodeAt(0), [...lengths, spelling.length]);
  }
  return (text) => {
    const found: Occurrence[] = [];
    for (let start = 0; start < text.length; start += 1) {
      const lengths = lengthsByFirstUnit.get(text.charCodeAt(start));
      if (lengths === undefined) continue;
      for (const length of lengths) {
        const spelling = text.slice(start, start + length);
        if (known.has(spelling)) found.push({ spelling, start });
      }
    }
    return found;
  };
}
