/** Finds the likeliest tokens: the largest of a vocabulary's values. */

/** Index of the largest value, the lowest of equals; -1 when no value is larger than -Infinity. NaN is never chosen. */
export function argmax(values: Float32Array): number {
  return largestIndices(values, 1)[0] ?? -1;
}

/** Indices of the `count` largest values, largest first and lower indices first among equals. Fewer where values are NaN or -Infinity, which are never chosen. */
export function largestIndices(values: Float32Array, count: number): number[] {
  const kept: number[] = [];
  let threshold = -Infinity;
  for (let index = nextAbove(values, threshold, 0); index < values.length; index = nextAbove(values, threshold, index + 1)) {
    const value = values[index] as number;
    if (kept.length < count) kept.push(index);
    let place = kept.length - 1;
    for (; place > 0 && (values[kept[place - 1] as number] as number) < value; place--) kept[place] = kept[place - 1] as number;
    kept[place] = index;
    if (kept.length === count) threshold = values[kept[count - 1] as number] as number;
  }
  return kept;
}

/** The first index from `start` on whose value is above the threshold; `values.length` when there is none. Nearly all of the time goes here. */
function nextAbove(values: Float32Array, threshold: number, start: number): number {
  let index = start;
  // Four at a time is nearly twice as fast as one at a time.
  for (; index + 3 < values.length; index += 4) {
    if ((values[index] as number) > threshold || (values[index + 1] as number) > threshold) break;
    if ((values[index + 2] as number) > threshold || (values[index + 3] as number) > threshold) break;
  }
  while (index < values.length && !((values[index] as number) > threshold)) index++;
  return index;
}
