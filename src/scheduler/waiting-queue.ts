/** Sequences without a slot, in the order in which they may have one: those that lost theirs first, then new ones, each by arrival. */
import type { Sequence } from "./sequence.js";

export interface WaitingQueue extends Iterable<Sequence> {
  readonly length: number;
  /** Tokens that the waiting sequences would have to compute at most. */
  readonly tokens: number;
  add(sequence: Sequence): void;
  remove(sequence: Sequence): void;
}

export function createWaitingQueue(): WaitingQueue {
  const items: Sequence[] = [];
  let tokens = 0;

  return {
    get length() {
      return items.length;
    },
    get tokens() {
      return tokens;
    },
    add(sequence) {
      tokens += sequence.known.length;
      const isLast = items.length === 0 || goesBefore(items[items.length - 1] as Sequence, sequence);
      if (isLast) items.push(sequence);
      else
        items.splice(
          items.findIndex((other) => goesBefore(sequence, other)),
          0,
          sequence,
        );
    },
    remove(sequence) {
      const index = items.indexOf(sequence);
      if (index < 0) return;
      tokens -= sequence.known.length;
      items.splice(index, 1);
    },
    [Symbol.iterator]: () => items[Symbol.iterator](),
  };
}

function goesBefore(a: Sequence, b: Sequence): boolean {
  return a.hasStarted === b.hasStarted ? a.order < b.order : a.hasStarted;
}
