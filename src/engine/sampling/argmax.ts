/** The likeliest token. */

/** Index of the largest value, the lowest of equals; -1 when no value is larger than -Infinity. NaN is never chosen. */
export function argmax(values: Float32Array): number {
  let best = -1;
  let largest = -Infinity;
  for (let index = 0; index < values.length; index++) {
    const value = values[index] as number;
    if (value > largest) {
      largest = value;
      best = index;
    }
  }
  return best;
}
