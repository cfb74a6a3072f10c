/** Configuration from a YAML file. */
import { readFileSync } from "node:fs";
import { isNode, LineCounter, parseDocument } from "yaml";
import { type Assignment, assignmentsOf, type Problem } from "./assignment.js";
import type { KeyPath } from "./key-tree.js";

export interface SourceResult {
  readonly assignments: readonly Assignment[];
  readonly problems: readonly Problem[];
}

/** Reads a file; that it cannot be read or is no YAML is a problem in the result. */
export function readConfigFile(file: string): SourceResult {
  try {
    return parseConfigText(readFileSync(file, "utf8"), file);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return { assignments: [], problems: [{ key: "", message: `${file}: the file cannot be read (${reason}).` }] };
  }
}

/** @param file - the name that messages call the text by. */
export function parseConfigText(text: string, file: string): SourceResult {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  const lineAt = (offset: number) => `${file}:${lines.linePos(offset).line}`;
  if (document.errors.length > 0) {
    return { assignments: [], problems: document.errors.map((error) => ({ key: "", message: `${lineAt(error.pos[0])}: not valid YAML: ${error.message}` })) };
  }
  const originOf = (path: KeyPath) => {
    const node = document.getIn(path, true);
    return isNode(node) && node.range != null ? lineAt(node.range[0]) : file;
  };
  const content: unknown = document.toJS();
  if (content !== null && (typeof content !== "object" || Array.isArray(content))) {
    return { assignments: [], problems: [{ key: "", message: `${file}: a configuration file is a mapping of sections, such as "server: { port: 9000 }".` }] };
  }
  return { assignments: assignmentsOf(content, [], originOf), problems: [] };
}
