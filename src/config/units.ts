/** Durations and sizes as people write them: `250ms`, `8MiB`. */

const millisecondsPerUnit: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
]);

const bytesPerUnit: ReadonlyMap<string, number> = new Map([
  ["B", 1],
  ["KB", 1000],
  ["MB", 1000 ** 2],
  ["GB", 1000 ** 3],
  ["KiB", 1024],
  ["MiB", 1024 ** 2],
  ["GiB", 1024 ** 3],
]);

/** Milliseconds of a duration with its unit, such as `250ms` or `1.5h`; undefined when the text is not one. */
export function parseDuration(text: string): number | undefined {
  return parseWithUnit(text, millisecondsPerUnit);
}

/** Bytes of a size with its unit, such as `8MiB` or `10MB`; undefined when the text is not one. */
export function parseSize(text: string): number | undefined {
  return parseWithUnit(text, bytesPerUnit);
}

/** The shortest exact spelling of a duration that `parseDuration` reads back. */
export function formatDuration(milliseconds: number): string {
  return formatWithUnit(milliseconds, ["h", "m", "s", "ms"], millisecondsPerUnit);
}

/** The shortest exact spelling of a size that `parseSize` reads back; binary units before decimal ones. */
export function formatSize(bytes: number): string {
  return formatWithUnit(bytes, ["GiB", "MiB", "KiB", "GB", "MB", "KB", "B"], bytesPerUnit);
}

/** A count must come out whole: half a millisecond or a third of a byte is a slip of the pen. */
function parseWithUnit(text: string, units: ReadonlyMap<string, number>): number | undefined {
  const match = /^(\d+(?:\.\d+)?)\s*([A-Za-z]+)$/.exec(text.trim());
  const factor = units.get(match?.[2] ?? "");
  if (match?.[1] === undefined || factor === undefined) return undefined;
  const total = Number(match[1]) * factor;
  return Number.isSafeInteger(total) ? total : undefined;
}

function formatWithUnit(total: number, largestFirst: readonly string[], units: ReadonlyMap<string, number>): string {
  const smallest = largestFirst[largestFirst.length - 1] ?? "";
  const unit = total === 0 ? smallest : (largestFirst.find((name) => total % (units.get(name) ?? 1) === 0) ?? smallest);
  return `${total / (units.get(unit) ?? 1)}${unit}`;
}
