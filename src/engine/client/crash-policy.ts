/**
 * Finds the request that kills engines, without ever failing an innocent one. Pure.
 *
 * A death is a strike against every piece of work that was in the engine; progress clears the strikes.
 *
 *   strikes   how the work is submitted again
 *   0, 1      at once, with all the others
 *   2         suspect: one at a time in an engine, the next when the last has progressed or ended
 *   3         accused: it was the only suspect in the engine that died, but not alone there; now it runs in an empty engine
 *
 * Only work that was alone in a dying engine is convicted, at its third strike or later: then nothing else can have been the cause.
 */

export interface CrashRecord {
  /** Deaths of engines that this work was in, since it last made progress. */
  readonly strikes: number;
}

export const cleanRecord: CrashRecord = { strikes: 0 };

const suspectStrikes = 2;
const convictingStrikes = 3;

/** What a death means for those who were in the engine. */
export interface Verdict<Id> {
  /** The new record of each; without the convicted one. */
  readonly records: ReadonlyMap<Id, CrashRecord>;
  readonly convicted: { readonly id: Id; readonly deaths: number } | undefined;
}

/** Judges one engine's death. `present` are those that were submitted to it and had not ended. */
export function judgeDeath<Id>(present: ReadonlyMap<Id, CrashRecord>): Verdict<Id> {
  const records = new Map([...present].map(([id, record]) => [id, { strikes: record.strikes + 1 }]));
  const [only] = records;
  if (records.size !== 1 || only === undefined || only[1].strikes < convictingStrikes) return { records, convicted: undefined };
  return { records: new Map(), convicted: { id: only[0], deaths: only[1].strikes } };
}

/** Whether waiting work may go to an engine that holds `present` now. */
export function mayJoin(record: CrashRecord, present: Iterable<CrashRecord>): boolean {
  let count = 0;
  let worst = 0;
  for (const other of present) {
    count += 1;
    worst = Math.max(worst, other.strikes);
  }
  if (record.strikes >= convictingStrikes) return count === 0;
  if (worst >= convictingStrikes) return false;
  return record.strikes < suspectStrikes || worst < suspectStrikes;
}

/**
 * The order in which waiting work is offered to the engines: the accused first, since only a fresh engine is empty; the rest as they came.
 * Does not change `waiting`.
 */
export function submissionOrder<Work>(waiting: readonly Work[], recordOf: (work: Work) => CrashRecord): readonly Work[] {
  const isAccused = (work: Work): boolean => recordOf(work).strikes >= convictingStrikes;
  if (!waiting.some(isAccused)) return waiting;
  return [...waiting.filter(isAccused), ...waiting.filter((work) => !isAccused(work))];
}
