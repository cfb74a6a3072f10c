/** Configuration from the command line: `--set server.port=9000`, and the flags that stand for one key. */
import { type Assignment, assignmentsOf } from "./assignment.js";
import type { SourceResult } from "./file-source.js";
import { splitPath } from "./key-tree.js";
import { valueOfText } from "./text-value.js";

/** @param texts - what followed each `--set`. */
export function readSets(texts: readonly string[]): SourceResult {
  const assignments: Assignment[] = [];
  const problems: SourceResult["problems"][number][] = [];
  for (const text of texts) {
    const equals = text.indexOf("=");
    if (equals < 1) {
      problems.push({ key: text, message: `--set ${text}: a key and a value are needed, such as --set server.port=9000.` });
      continue;
    }
    const path = splitPath(text.slice(0, equals));
    assignments.push(...assignmentsOf(valueOfText(text.slice(equals + 1), path), path, () => `--set ${text}`));
  }
  return { assignments, problems };
}

/** What `pagoda serve` can be told without `--set`. */
export interface ServeFlags {
  readonly model?: string;
  readonly alias?: readonly string[];
  readonly chatTemplate?: string;
  readonly host?: string;
  readonly port?: string;
}

/** `--model` serves that one model instead of the list; `--alias` and `--chat-template` belong to the first model. */
export function readFlags(flags: ServeFlags): readonly Assignment[] {
  const assignments: Assignment[] = [];
  if (flags.model !== undefined) {
    assignments.push({ path: ["models"], value: [], origin: "--model" });
    assignments.push({ path: ["models", 0, "source"], value: flags.model, origin: "--model" });
  }
  if (flags.alias !== undefined) assignments.push({ path: ["models", 0, "aliases"], value: flags.alias, origin: "--alias" });
  if (flags.chatTemplate !== undefined) assignments.push({ path: ["models", 0, "chatTemplate"], value: flags.chatTemplate, origin: "--chat-template" });
  if (flags.host !== undefined) assignments.push({ path: ["server", "host"], value: flags.host, origin: "--host" });
  if (flags.port !== undefined) assignments.push({ path: ["server", "port"], value: valueOfText(flags.port, ["server", "port"]), origin: "--port" });
  return assignments;
}
