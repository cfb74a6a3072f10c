/** Lets the step loop sleep until there is something to do: no polling, no CPU while idle. */

export interface WorkSignal {
  /** There is something new to plan, or a reason to look up. */
  notify(): void;
  /** Resolves at the next `notify`, or at once if one came since the last time. */
  arrived(): Promise<void>;
}

export function createWorkSignal(): WorkSignal {
  let isNotified = false;
  let wake: (() => void) | undefined;
  return {
    notify() {
      isNotified = true;
      wake?.();
    },
    async arrived() {
      if (!isNotified) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      wake = undefined;
      isNotified = false;
    },
  };
}
