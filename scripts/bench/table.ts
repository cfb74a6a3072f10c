/** Prints aligned text tables. */

/** Rows under a heading, columns as wide as their widest cell; every column but the first is aligned to the right. */
export function formatTable(heading: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = heading.map((title, column) => Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)));
  const line = (cells: readonly string[]): string =>
    widths
      .map((width, column) => (column === 0 ? (cells[column] ?? "").padEnd(width) : (cells[column] ?? "").padStart(width)))
      .join("  ")
      .trimEnd();
  return [line(heading), line(widths.map((width) => "-".repeat(width))), ...rows.map(line)].join("\n");
}
