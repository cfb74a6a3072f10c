/** One consumer's view of events that arrive when they like. */

export interface EventQueue<Event> {
  push(event: Event): void;
  /** No more events come; the consumer still gets those that wait. */
  end(): void;
  readonly events: AsyncIterable<Event>;
}

/**
 * Events wait here until the consumer takes them. The queue has no limit of its own: its user must know that the number of events is bounded.
 * `onAbandon` is called once when the consumer leaves its loop before the end; what is pushed after that is dropped.
 */
export function createEventQueue<Event>(onAbandon: () => void): EventQueue<Event> {
  const waiting: Event[] = [];
  const takers: ((result: IteratorResult<Event>) => void)[] = [];
  let isClosed = false;
  const done: IteratorResult<Event> = { done: true, value: undefined };

  const close = (): void => {
    isClosed = true;
    for (const take of takers.splice(0)) take(done);
  };

  const iterator: AsyncIterableIterator<Event> = {
    next() {
      const value = waiting.shift();
      if (value !== undefined) return Promise.resolve({ done: false, value });
      if (isClosed) return Promise.resolve(done);
      return new Promise((resolve) => takers.push(resolve));
    },
    return() {
      waiting.length = 0;
      if (!isClosed) {
        close();
        onAbandon();
      }
      return Promise.resolve(done);
    },
    [Symbol.asyncIterator]: () => iterator,
  };

  return {
    push(event) {
      if (isClosed) return;
      const take = takers.shift();
      if (take === undefined) waiting.push(event);
      else take({ done: false, value: event });
    },
    end: close,
    events: iterator,
  };
}
