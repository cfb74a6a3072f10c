/** How fast the queue empties, for an honest Retry-After. */

export interface DrainRate {
  /** Work has come after a time without any, which says nothing about how fast work is done. */
  began(nowMs: number): void;
  finished(nowMs: number): void;
  /** Whole seconds, 1 to 60, until `waiting` requests will have been served. */
  secondsFor(waiting: number): number;
}

/** Weight of the newest gap between two finished requests in the running average. */
const newestWeight = 0.1;

export function createDrainRate(): DrainRate {
  let lastMs: number | undefined;
  let gapMs: number | undefined;
  return {
    began(nowMs) {
      lastMs = nowMs;
    },
    finished(nowMs) {
      if (lastMs !== undefined) {
        const gap = Math.max(0, nowMs - lastMs);
        gapMs = gapMs === undefined ? gap : gapMs + (gap - gapMs) * newestWeight;
      }
      lastMs = nowMs;
    },
    secondsFor: (waiting) => Math.min(60, Math.max(1, Math.ceil((waiting * (gapMs ?? 1000)) / 1000))),
  };
}
