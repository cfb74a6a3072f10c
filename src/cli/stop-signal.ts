/** The operator's wish to stop: SIGTERM or SIGINT. */
import { constants } from "node:os";

const signals = ["SIGTERM", "SIGINT"] as const;

export interface StopSignal {
  /** Resolves with the first signal. */
  readonly received: Promise<NodeJS.Signals>;
  /** Signals end the process again as they do by themselves. */
  release(): void;
}

/**
 * Until `listenForStop` takes over, a signal ends the process at once and with code 0: nothing has been started that would need an end of its own.
 * Called before the program's own modules are loaded, which takes most of a start; so this module imports none of them.
 */
export function endOnSignal(): void {
  for (const signal of signals) process.on(signal, endStart);
}

function endStart(): void {
  process.exit(0);
}

/** Listens from now on. A second signal ends the process at once, with the exit code that shells give to a process killed by it. */
export function listenForStop(): StopSignal {
  let resolve: (signal: NodeJS.Signals) => void = () => undefined;
  const received = new Promise<NodeJS.Signals>((resolveReceived) => {
    resolve = resolveReceived;
  });
  let count = 0;
  const onSignal = (signal: NodeJS.Signals): void => {
    count += 1;
    if (count > 1) process.exit(128 + constants.signals[signal]);
    resolve(signal);
  };
  for (const signal of signals) process.on(signal, onSignal).off(signal, endStart);
  return {
    received,
    release() {
      for (const signal of signals) process.off(signal, onSignal);
    },
  };
}
