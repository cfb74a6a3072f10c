/** The configuration while it is put together: plain mappings and lists of what users wrote. */
import type { Assignment, Problem } from "./assignment.js";
import { joinPath, type KeyPath } from "./key-tree.js";

export type ConfigTree = { [name: string]: unknown };

/**
 * Puts one value in its place, over what is there. The path is a known one.
 * The only thing that can go wrong is an index that would leave a gap in a list.
 */
export function assign(tree: ConfigTree, { path, value, origin }: Assignment): Problem | undefined {
  let place: unknown = tree;
  for (const [depth, part] of path.entries()) {
    const isLast = depth === path.length - 1;
    if (Array.isArray(place) && typeof part === "number") {
      if (part > place.length) {
        const list = joinPath(path.slice(0, depth));
        const message = `${joinPath(path)}: ${list} has ${place.length} entries, so the next one is ${list}.${place.length} (${origin}).`;
        return { key: joinPath(path), message };
      }
      if (isLast) place[part] = copyOf(value);
      else place[part] ??= {};
      place = place[part];
    } else if (isTree(place)) {
      if (isLast) place[part] = copyOf(value);
      else place[part] ??= typeof path[depth + 1] === "number" ? [] : {};
      place = place[part];
    }
  }
  return undefined;
}

/** What is at a path; undefined when nothing is. */
export function valueAt(tree: ConfigTree, path: KeyPath): unknown {
  let place: unknown = tree;
  for (const part of path) {
    if (Array.isArray(place) && typeof part === "number") place = place[part];
    else if (isTree(place)) place = place[part];
    else return undefined;
  }
  return place;
}

/** An own copy of an empty container, for later assignments go into it. */
function copyOf(value: unknown): unknown {
  return structuredClone(value);
}

function isTree(value: unknown): value is ConfigTree {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
