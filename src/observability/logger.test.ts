import { expect, it } from "vitest";
import { createLogger, prettyLine } from "./logger.js";

function logged(format: "json" | "pretty" | "auto", isTerminal = false): string[] {
  const lines: string[] = [];
  const log = createLogger({ level: "info", format, isTerminal, output: { write: (line) => lines.push(line) } });
  log.info({ model: "tiny", ms: 5 }, "served");
  log.debug("not at this level");
  return lines;
}

it("writes JSON lines for machines, and short lines for people at a terminal", () => {
  const [line, ...more] = logged("json");
  expect(more).toEqual([]);
  expect(JSON.parse(line ?? "")).toEqual({ level: "info", time: expect.stringMatching(/^\d{4}-.*Z$/), model: "tiny", ms: 5, msg: "served" });
  expect(logged("auto")[0]).toMatch(/^\{/);
  for (const pretty of [logged("pretty"), logged("auto", true)])
    expect(pretty).toEqual([expect.stringMatching(/^[\d:.]{12} INFO {2}served model=tiny ms=5\n$/)]);
});

it("puts an error's stack below its line", () => {
  const line = prettyLine(
    JSON.stringify({ level: "error", time: "2030-01-01T10:00:00.000Z", msg: "failed", err: { message: "no", stack: "Error: no\n at x" } }),
  );
  expect(line).toBe("10:00:00.000 ERROR failed\n  Error: no\n   at x\n");
});
