/** Finds stop strings in streamed text and holds back what may still become one. */

export interface StopMatch {
  /** Text that can be sent now: it is before any stop string. */
  readonly text: string;
  readonly stopped: boolean;
}

export interface StopMatcher {
  /** Takes the next text. After a stop nothing more comes out. */
  push(text: string): StopMatch;
  /** The text is over: what was held back comes out, up to a stop string in it. */
  finish(): StopMatch;
}

/**
 * A matcher for one text. What comes out, however the text is cut into pushes, is the text before the stop string that starts first.
 * Of two that start at the same place it does not matter which is found, as neither is part of the output.
 * Empty stop strings, and those with half a surrogate pair, match nothing.
 */
export function createStopMatcher(stopStrings: readonly string[]): StopMatcher {
  const stops = stopStrings.filter((stop) => stop !== "" && !/\p{Surrogate}/u.test(stop));
  const longest = Math.max(0, ...stops.map((stop) => stop.length));
  let held = "";
  let isOver = false;

  /** Ends the text before `end`. */
  function stopAt(end: number): StopMatch {
    const text = held.slice(0, end);
    held = "";
    isOver = true;
    return { text, stopped: true };
  }

  function release(end: number): StopMatch {
    const text = held.slice(0, end);
    held = held.slice(end);
    return { text, stopped: false };
  }

  return {
    push(text) {
      if (isOver) return { text: "", stopped: true };
      if (stops.length === 0) return { text, stopped: false };
      held += text;
      const found = firstMatch(held, stops);
      // A stop string that began earlier and is not complete yet would win over the one found.
      const open = firstOpenMatch(held, stops, longest);
      return found !== undefined && found <= open ? stopAt(found) : release(Math.min(open, found ?? held.length));
    },
    finish() {
      if (isOver) return { text: "", stopped: true };
      const found = firstMatch(held, stops);
      return found === undefined ? release(held.length) : stopAt(found);
    },
  };
}

/** Where the first complete stop string starts. */
function firstMatch(text: string, stops: readonly string[]): number | undefined {
  const starts = stops.map((stop) => text.indexOf(stop)).filter((start) => start >= 0);
  return starts.length === 0 ? undefined : Math.min(...starts);
}

/** Where the first stop string starts whose rest is still to come; the text's length if none does. */
function firstOpenMatch(text: string, stops: readonly string[], longest: number): number {
  for (let start = Math.max(0, text.length - longest + 1); start < text.length; start += 1) {
    if (stops.some((stop) => stop.length > text.length - start && text.endsWith(stop.slice(0, text.length - start)))) return start;
  }
  return text.length;
}
