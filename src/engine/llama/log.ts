/** Carries the libraries' log lines to a function, and lets a caller collect those of one operation to explain its failure. */
import koffi from "koffi";
import { constants } from "./constants.js";
import type { Native } from "./functions.js";

export type LogLevel = "debug" | "info" | "warn" | "error";
export type LlamaLog = (level: LogLevel, text: string) => void;

export interface LogRouter {
  /**
   * Starts collecting warnings and errors; the result ends it and returns their lines.
   * With `expected` they are logged as `debug`: something is only tried, and failing is no news.
   */
  collect(options?: { readonly expected?: boolean }): () => readonly string[];
  /** From now on the libraries log nothing. */
  close(): void;
}

const callbackType = koffi.pointer(koffi.proto(koffi.types.void, [koffi.types.int, koffi.types.string, koffi.pointer(koffi.types.void)]));

const levels: Readonly<Record<number, LogLevel>> = {
  [constants.GGML_LOG_LEVEL_DEBUG]: "debug",
  [constants.GGML_LOG_LEVEL_INFO]: "info",
  [constants.GGML_LOG_LEVEL_WARN]: "warn",
  [constants.GGML_LOG_LEVEL_ERROR]: "error",
};

/**
 * Routes the libraries' log, which is one per process.
 *
 * A line logged on another thread waits there until the event loop runs the callback. So whatever may log from a thread
 * (loading, making a context, computing) must be called asynchronously: a synchronous call that waited for such a thread would never end.
 * `silence` is a C function that ignores its arguments; it takes over at the end, when no JavaScript may run any more.
 */
export function routeLog(native: Native, log: LlamaLog, silence: bigint): LogRouter {
  const collectors = new Set<{ readonly lines: string[]; readonly expected: boolean }>();
  const lines = assembleLines((level, text) => {
    let isExpected = false;
    if (level === "warn" || level === "error") {
      for (const collector of collectors) {
        collector.lines.push(text);
        isExpected ||= collector.expected;
      }
    }
    log(isExpected ? "debug" : level, text);
  });
  const callback = koffi.register(lines, callbackType);
  native.ggml_log_set(callback, null);
  native.llama_log_set(callback, null);

  let isOpen = true;
  const close = () => {
    if (!isOpen) return;
    isOpen = false;
    native.llama_log_set(silence, null);
    native.ggml_log_set(silence, null);
    koffi.unregister(callback);
    process.removeListener("exit", close);
  };
  process.once("exit", close);

  return {
    collect(options = {}) {
      const collector = { lines: [] as string[], expected: options.expected ?? false };
      collectors.add(collector);
      return () => {
        collectors.delete(collector);
        return collector.lines;
      };
    },
    close,
  };
}

/** Makes whole lines of what the libraries print in pieces, keeping the level of the piece a line began with. */
export function assembleLines(emit: LlamaLog): (level: number, text: string) => void {
  let pending = "";
  let pendingLevel: LogLevel = "info";
  return (code, text) => {
    const level = levels[code];
    if (pending !== "" && level !== undefined) {
      emit(pendingLevel, pending); // a new message began although the last one had no line end
      pending = "";
    }
    if (pending === "") pendingLevel = level ?? pendingLevel;
    const parts = (pending + text).split("\n");
    pending = parts.pop() ?? "";
    for (const part of parts) if (part.trim() !== "") emit(pendingLevel, part.trimEnd());
  };
}
