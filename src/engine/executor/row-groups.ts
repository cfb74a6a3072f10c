/** Which rows of a plan are computed together. Pure. */
import type { Row } from "../../scheduler/step-plan.js";

export interface GroupLimits {
  /** Single tokens apart from longer rows. */
  readonly splitCalls: boolean;
  /** Tokens of one call at most. */
  readonly batchTokens: number;
}

/** Cuts the chosen rows, given as indices, into calls. The order stays, except that single tokens come first when split. */
export function groupRows(rows: readonly Row[], chosen: readonly number[], { splitCalls, batchTokens }: GroupLimits): number[][] {
  const isSingle = (index: number) => rows[index]?.tokens.length === 1;
  const kinds = splitCalls ? [chosen.filter(isSingle), chosen.filter((index) => !isSingle(index))] : [chosen];
  return kinds.flatMap((kind) => cutBySize(rows, kind, batchTokens));
}

function cutBySize(rows: readonly Row[], indices: readonly number[], batchTokens: number): number[][] {
  const groups: number[][] = [];
  let room = 0;
  for (const index of indices) {
    const size = rows[index]?.tokens.length ?? 0;
    if (groups.length === 0 || size > room) {
      groups.push([]);
      room = batchTokens;
    }
    groups.at(-1)?.push(index);
    room -= size;
  }
  return groups;
}
