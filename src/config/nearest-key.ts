/** The known key that an unknown one was meant to be: a slip in the name, or the right name in the wrong section. */
import { allKeys, findKey, joinPath, type KeyPath } from "./key-tree.js";
import { nearestName } from "./nearest.js";

/** @param unknown - how many parts of the path are known, and which keys would have been possible there. */
export function nearestKey(path: KeyPath, unknown: { readonly depth: number; readonly keys: readonly string[] }): string | undefined {
  return withoutSlip(path, unknown) ?? inOtherSection(path) ?? (unknown.depth === 0 ? nearestWhole(path) : undefined);
}

/** The path with its first unknown part, and all after that, put right; undefined when that does not lead to a key. */
function withoutSlip(path: KeyPath, { depth, keys }: { readonly depth: number; readonly keys: readonly string[] }): string | undefined {
  const sibling = nearestName(String(path[depth] ?? ""), keys);
  if (sibling === undefined) return undefined;
  const corrected = [...path.slice(0, depth), sibling, ...path.slice(depth + 1)];
  const found = findKey(corrected);
  return found.kind === "unknown" ? withoutSlip(corrected, found) : joinPath(corrected);
}

function inOtherSection(path: KeyPath): string | undefined {
  const last = String(path[path.length - 1] ?? "").toLowerCase();
  const found = wholeKeys().find((key) => key[key.length - 1]?.toLowerCase() === last);
  return found === undefined ? undefined : joinPath(found);
}

/** For a slip in the dots, such as `serverport`. Below a known section this would only find a key that has the section in common. */
function nearestWhole(path: KeyPath): string | undefined {
  return nearestName(joinPath(path), wholeKeys().map(joinPath));
}

function wholeKeys(): readonly (readonly string[])[] {
  return allKeys()
    .map((key) => key.path)
    .filter((path) => !path.includes("*"));
}
