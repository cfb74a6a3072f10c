/** Which rows of a plan are computed together. Pure. */
import type { Row } from "../../scheduler/step-plan.js";

export interface GroupLimits {
  /** Single tokens apart from longer rows. */
  readonly splitCalls: boolean;
  /** Tokens of one call at most. */
  readonly batchTokens: number;
}

/**
 * Cuts the chosen rows, given as indices, into calls: single tokens first when split, and each kind in the order of slots.
 * In the streams layout llama.cpp computes rows of consecutive slots in one pass over the weights and begins another pass wherever the next row's slot does not follow.
 */
export function groupRows(rows: readonly Row[], chosen: readonly number[], { splitCalls, batchTokens }: GroupLimits): number[][] {
  const slotOf = (index: number) => rows[index]?.slot ?? 0;
  const ordered = [...chosen].sort((a, b) => slotOf(a) - slotOf(b));
  const isSingle = (index: number) => rows[index]?.tokens.length === 1;
  const kinds = splitCalls ? [ordered.filter(isSingle), ordered.filter((index) => !isSingle(index))] : [ordered];
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
