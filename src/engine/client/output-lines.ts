/** Cuts a child's output into lines, passes them on, and remembers the last few for the report of its death. */
import type { Readable } from "node:stream";

/** Longer lines are cut: a library that writes without line ends must not fill the memory. */
const longestLine = 2_000;

export interface OutputLines {
  watch(stream: Readable | null): void;
  /** The last lines, oldest first. */
  readonly last: readonly string[];
}

export function createOutputLines(keepLines: number, onLine: (line: string) => void): OutputLines {
  const last: string[] = [];
  const accept = (line: string): void => {
    if (line.length === 0) return;
    last.push(line);
    if (last.length > keepLines) last.shift();
    onLine(line);
  };

  return {
    last,
    watch(stream) {
      if (stream === null) return;
      let rest = "";
      stream.setEncoding("utf8");
      stream.on("data", (text: string) => {
        const lines = (rest + text).split(/\r?\n/);
        rest = lines.pop() ?? "";
        lines.forEach(accept);
        if (rest.length > longestLine) {
          accept(rest.slice(0, longestLine));
          rest = "";
        }
      });
      stream.on("close", () => accept(rest));
    },
  };
}
