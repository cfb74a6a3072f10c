/** How long each stage of one request took, for the `Server-Timing` header. */

export interface StageTimings {
  /** In milliseconds of `performance.now()`. */
  readonly arrivedMs: number;
  /** Closes the stage that began at the last mark (or at arrival) under this name. */
  mark(stage: string): void;
  /** Notes a stage that was measured elsewhere. */
  set(stage: string, durationMs: number): void;
  /** `entry;dur=0.4, tokenize;dur=1.2, total;dur=1.9` */
  header(): string;
}

/** Starts the clock at `arrivedMs`, in milliseconds of `performance.now()`. */
export function createStageTimings(arrivedMs: number): StageTimings {
  const stages: (readonly [string, number])[] = [];
  let lastMark = arrivedMs;
  const elapsedMs = () => performance.now() - arrivedMs;
  return {
    arrivedMs,
    mark(stage) {
      const now = performance.now();
      stages.push([stage, now - lastMark]);
      lastMark = now;
    },
    set: (stage, durationMs) => stages.push([stage, durationMs]),
    header: () => [...stages, ["total", elapsedMs()] as const].map(([stage, ms]) => `${stage};dur=${ms.toFixed(1)}`).join(", "),
  };
}
