/** Runs asynchronous jobs a few at a time, in the order of arrival. */

/** The same function, of which at most `limit` calls run at a time; the others wait. */
export function limited<Arguments extends readonly unknown[], Result>(
  limit: number,
  run: (...args: Arguments) => Promise<Result>,
): (...args: Arguments) => Promise<Result> {
  const waiting: (() => void)[] = [];
  let running = 0;
  return async (...args) => {
    if (running >= limit) await new Promise<void>((resolve) => waiting.push(resolve));
    else running += 1;
    try {
      return await run(...args);
    } finally {
      const next = waiting.shift(); // it takes over the place of this one
      if (next === undefined) running -= 1;
      else next();
    }
  };
}
