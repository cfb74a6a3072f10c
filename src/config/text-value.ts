/** Values that come as plain text, from the environment or the command line. */
import { parse } from "yaml";
import { findKey, type KeyPath } from "./key-tree.js";

/** The text itself for a key that takes text, else what YAML makes of it: `8` is a number, `[a, b]` a list. */
export function valueOfText(text: string, path: KeyPath): unknown {
  const found = findKey(path);
  if (found.kind === "unknown" || (found.kind === "key" && found.key.isText)) return text;
  try {
    const value: unknown = parse(text);
    return value;
  } catch {
    // Text that is no YAML is never what the key wants either; as it stands it makes the clearer message.
    return text;
  }
}
