/** One value for one key, and who set it: every source of configuration is a list of these. */
import { findKey, joinPath, type KeyPath } from "./key-tree.js";
import { nearestKey } from "./nearest-key.js";

export interface Assignment {
  readonly path: KeyPath;
  readonly value: unknown;
  /** For messages: `pagoda.yaml:3`, `--set server.port=1`, `PAGODA_SERVER_PORT`. */
  readonly origin: string;
}

/** Something that the user must correct. */
export interface Problem {
  /** The key at fault; empty when it is none in particular. */
  readonly key: string;
  readonly message: string;
}

/** Takes a tree apart into one assignment for each key. A list is emptied first, so that it replaces what was there. */
export function assignmentsOf(value: unknown, path: KeyPath, originOf: (path: KeyPath) => string): readonly Assignment[] {
  const found = findKey(path);
  // A section or a list of which only the name is written, as when all below it is commented out.
  if ((found.kind === "section" || found.kind === "list") && value === null) return [];
  if (found.kind === "section" && isMapping(value)) {
    return Object.entries(value).flatMap(([name, inner]) => assignmentsOf(inner, [...path, name], originOf));
  }
  if (found.kind === "list" && Array.isArray(value)) {
    const emptied = { path, value: [], origin: originOf(path) };
    return [emptied, ...value.flatMap((inner: unknown, index) => elementAssignments(inner, [...path, index], originOf))];
  }
  return [{ path, value, origin: originOf(path) }];
}

/** Why an assignment cannot be taken; undefined when it can. */
export function checkAssignment({ path, value, origin }: Assignment): Problem | undefined {
  const key = joinPath(path);
  const found = findKey(path);
  if (found.kind === "unknown") {
    const near = nearestKey(path, found);
    const hint = near === undefined ? "" : ` Did you mean ${near}?`;
    return { key, message: `${key}: unknown key (${origin}, value ${show(value)}).${hint} ${describeKnown(path, found.depth, found.keys)}` };
  }
  if (found.kind === "list" && Array.isArray(value)) return undefined;
  if (found.kind === "section" && isMapping(value)) return undefined;
  if (found.kind === "key" && found.key.schema.safeParse(value).success) return undefined;
  return { key, message: `${key}: ${show(value)} is not allowed (${origin}). Allowed: ${describeAllowed(found)}.` };
}

/** A value as the user knows it, cut when it is long. */
export function show(value: unknown): string {
  const text = typeof value === "number" ? numberText(value) : (JSON.stringify(value) ?? "nothing");
  return text.length > 80 ? `${text.slice(0, 77)}...` : text;
}

/** YAML's own spelling of what JSON has none for. */
function numberText(value: number): string {
  if (Number.isNaN(value)) return ".nan";
  return Number.isFinite(value) ? JSON.stringify(value) : value > 0 ? ".inf" : "-.inf";
}

/** An element has its place in the list even when its value is refused, so that the others keep their index. */
function elementAssignments(value: unknown, path: KeyPath, originOf: (path: KeyPath) => string): readonly Assignment[] {
  const place = { path, value: {}, origin: originOf(path) };
  return [place, ...(isMapping(value) ? assignmentsOf(value, path, originOf) : [{ ...place, value }])];
}

function describeAllowed(found: Exclude<ReturnType<typeof findKey>, { kind: "unknown" }>): string {
  if (found.kind === "key") return found.key.allowed;
  return found.kind === "list" ? "a list of sections" : `a section with the keys ${found.keys.join(", ")}`;
}

function describeKnown(path: KeyPath, depth: number, keys: readonly string[]): string {
  const parent = joinPath(path.slice(0, depth));
  if (keys.length === 0) return `${parent} has no keys below it.`;
  return `Known ${parent === "" ? "at the top" : `in ${parent}`}: ${keys.join(", ")}.`;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
