/** The known key that an unknown one was meant to be: a slip in the name, or the right name in the wrong section. */
import { allKeys, joinPath, type KeyPath } from "./key-tree.js";
import { nearestName } from "./nearest.js";

/** @param unknown - how many parts of the path are known, and which keys would have been possible there. */
export function nearestKey(path: KeyPath, unknown: { readonly depth: number; readonly keys: readonly string[] }): string | undefined {
  const wrong = String(path[unknown.depth] ?? "");
  const sibling = nearestName(wrong, unknown.keys);
  if (sibling !== undefined) return joinPath([...path.slice(0, unknown.depth), sibling, ...path.slice(unknown.depth + 1)]);
  const last = String(path[path.length - 1] ?? "").toLowerCase();
  const known = allKeys().filter((key) => !key.path.includes("*"));
  const elsewhere = known.find((key) => key.path[key.path.length - 1]?.toLowerCase() === last);
  return elsewhere === undefined
    ? nearestName(
        joinPath(path),
        known.map((key) => joinPath(key.path)),
      )
    : joinPath(elsewhere.path);
}
