/** The program's log: JSON lines for machines, one short line for people at a terminal. Prompts and answers are never logged. */
import { type DestinationStream, destination, type Level, type Logger, pino, stdTimeFunctions } from "pino";
import type { ObservabilityConfig } from "../config/schema.js";

export type { Logger } from "pino";

export interface LoggerOptions {
  readonly level: ObservabilityConfig["logs"]["level"];
  readonly format: ObservabilityConfig["logs"]["format"];
  /** Where lines go; standard error when absent, so that standard output stays free for what commands print. */
  readonly output?: DestinationStream;
  /** Whether `output` is a terminal; decides what the format `auto` means. */
  readonly isTerminal?: boolean;
}

/** Makes the log of this process. Lines are written at once: none is lost when the process dies. */
export function createLogger(options: LoggerOptions): Logger {
  const output = options.output ?? destination({ fd: 2, sync: true });
  const isTerminal = options.isTerminal ?? (options.output === undefined && process.stderr.isTTY === true);
  const isPretty = options.format === "pretty" || (options.format === "auto" && isTerminal);
  const settings = {
    level: options.level,
    base: undefined,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
  };
  return pino(settings, isPretty ? { write: (line: string) => output.write(prettyLine(line)) } : output);
}

const levelMarks: { readonly [Name in Level]: string } = { trace: "TRACE", debug: "DEBUG", info: "INFO ", warn: "WARN ", error: "ERROR", fatal: "FATAL" };

/** `12:30:05.123 INFO  request served model=pagoda-tiny status=200`, made of one JSON log line. */
export function prettyLine(json: string): string {
  const { time, level, msg, err, ...rest } = JSON.parse(json) as Record<string, unknown>;
  const clock = typeof time === "string" ? time.slice(11, 23) : "";
  const mark = levelMarks[level as Level] ?? String(level);
  const fields = Object.entries(rest).map(([name, value]) => ` ${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  const stack = err === undefined ? "" : `\n  ${stackOf(err).replaceAll("\n", "\n  ")}`;
  return `${clock} ${mark} ${typeof msg === "string" ? msg : ""}${fields.join("")}${stack}\n`;
}

function stackOf(err: unknown): string {
  const { stack, message } = Object(err) as { readonly stack?: unknown; readonly message?: unknown };
  return String(stack ?? message ?? err);
}
