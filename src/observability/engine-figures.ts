/** Keeps counters of engine processes from falling when a process is replaced by a new one that counts from zero. */

/** The figures of one engine process; `steps` and the last three only grow while the process lives. */
export interface EngineFigures {
  readonly pagesTotal: number;
  readonly pagesUsed: number;
  readonly pagesCached: number;
  /** Sequences that the step decoded, one token each. */
  readonly decodeRows: number;
  readonly prefillTokens: number;
  readonly steps: number;
  readonly preemptions: number;
  readonly prefixQueryTokens: number;
  readonly prefixHitTokens: number;
}

export interface FiguresGrowth {
  readonly preemptions: number;
  readonly prefixQueryTokens: number;
  readonly prefixHitTokens: number;
}

const growing = ["steps", "preemptions", "prefixQueryTokens", "prefixHitTokens"] as const;

/**
 * What was counted between two readings of a model's replicas, in any order. A reading continues the nearest earlier one
 * that it can have grown from; where there is none, its process is new and everything it counted is growth.
 */
export function growthBetween(earlier: readonly EngineFigures[], later: readonly EngineFigures[]): FiguresGrowth {
  const unmatched = [...earlier].sort((a, b) => b.steps - a.steps);
  const growth = { preemptions: 0, prefixQueryTokens: 0, prefixHitTokens: 0 };
  for (const now of [...later].sort((a, b) => b.steps - a.steps)) {
    const index = unmatched.findIndex((then) => growing.every((name) => then[name] <= now[name]));
    const [then] = index === -1 ? [] : unmatched.splice(index, 1);
    growth.preemptions += now.preemptions - (then?.preemptions ?? 0);
    growth.prefixQueryTokens += now.prefixQueryTokens - (then?.prefixQueryTokens ?? 0);
    growth.prefixHitTokens += now.prefixHitTokens - (then?.prefixHitTokens ?? 0);
  }
  return growth;
}
