/** The few statistics that the benchmarks print. */

/** The value below which the share `quantile` (0 to 1) of the samples lies, between neighbours by proportion. NaN without samples. */
export function quantileOf(samples: readonly number[], quantile: number): number {
  const sorted = Float64Array.from(samples).sort();
  const place = (sorted.length - 1) * quantile;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function medianOf(samples: readonly number[]): number {
  return quantileOf(samples, 0.5);
}
