/** Counts what is under way, and tells when nothing is. */
export interface IdleCounter {
  enter(): void;
  leave(): void;
  /** Resolves when nothing is under way. */
  idle(): Promise<void>;
}

export function createIdleCounter(): IdleCounter {
  let count = 0;
  let waiting: (() => void)[] = [];
  return {
    enter() {
      count += 1;
    },
    leave() {
      count -= 1;
      if (count > 0) return;
      for (const resolve of waiting) resolve();
      waiting = [];
    },
    idle: () => (count === 0 ? Promise.resolve() : new Promise((resolve) => waiting.push(resolve))),
  };
}
