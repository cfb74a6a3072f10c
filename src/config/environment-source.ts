/** Configuration from environment variables: `PAGODA_SERVER_BODY_LIMIT` or `PAGODA_SERVER_BODYLIMIT` for `server.bodyLimit`. */
import type { Assignment } from "./assignment.js";
import type { SourceResult } from "./file-source.js";
import { allKeys, type Key, type KeyPath } from "./key-tree.js";
import { nearestName } from "./nearest.js";
import { valueOfText } from "./text-value.js";

const prefix = "PAGODA_";

/**
 * Kubernetes sets these for every service of a namespace, and one that is called `pagoda`, or `pagoda-server`, must not stop Pagoda from starting:
 * `PAGODA_SERVICE_HOST`, `PAGODA_SERVICE_PORT`, `PAGODA_SERVICE_PORT_HTTP`, `PAGODA_PORT_8000_TCP` with `_PROTO`, `_PORT` and `_ADDR` after it,
 * and `PAGODA_PORT`, which only its value tells from a slip for `PAGODA_SERVER_PORT`.
 */
const serviceLink = /_SERVICE_(HOST|PORT)(_|$)|_PORT_\d+_(TCP|UDP|SCTP)(_|$)/;
const serviceAddress = /^(tcp|udp|sctp):\/\//;

/** Reads every variable that begins with `PAGODA_`. An empty one counts as not set; an unknown one is a problem. */
export function readEnvironment(environment: Readonly<Record<string, string | undefined>>): SourceResult {
  const assignments: Assignment[] = [];
  const problems: SourceResult["problems"][number][] = [];
  const patterns = allKeys().map((key) => ({ key, pattern: variablePattern(key) }));
  for (const [name, text] of Object.entries(environment)) {
    if (!name.startsWith(prefix) || text === undefined || text === "" || isServiceLink(name, text)) continue;
    const known = patterns.find(({ pattern }) => pattern.test(name));
    if (known === undefined) {
      problems.push({ key: name, message: describeUnknown(name, text) });
      continue;
    }
    const path = pathOf(known.key, known.pattern.exec(name)?.slice(1) ?? []);
    assignments.push({ path, value: valueOfText(text, path), origin: `environment variable ${name}` });
  }
  return { assignments, problems };
}

function describeUnknown(name: string, text: string): string {
  const value = `value ${JSON.stringify(text)}`;
  if (name === prefix) return `${name}: the name of a configuration key is missing after ${prefix} (${value}). See 'pagoda config reference'.`;
  const near = nearestVariable(name);
  const hint = near === undefined ? "See 'pagoda config reference'." : `Did you mean ${near}?`;
  return `${name}: no configuration key has this environment variable (${value}). ${hint}`;
}

/** The variable of a key that is called so without its section, or one with a slip in its name. */
function nearestVariable(name: string): string | undefined {
  const paths = allKeys().map(({ path }) => path);
  const withoutSection = paths.find((path) => !path.includes("*") && variableName(path.slice(-1)) === name);
  if (withoutSection !== undefined) return variableName(withoutSection);
  const bare = (variable: string): string => variable.slice(prefix.length);
  const near = nearestName(
    bare(name),
    paths.map((path) => bare(variableName(path))),
  );
  return near === undefined ? undefined : prefix + near;
}

/** The variable's preferred name: `PAGODA_SCHEDULER_MAX_BATCH_TOKENS`. */
export function variableName(path: readonly string[]): string {
  return prefix + path.map((part) => snakeCase(part)).join("_");
}

function variablePattern(key: Key): RegExp {
  const parts = key.path.map((part) => (part === "*" ? "(\\d+)" : `(?:${snakeCase(part)}|${part.toUpperCase()})`));
  return new RegExp(`^${prefix}${parts.join("_")}$`);
}

function pathOf(key: Key, indices: readonly string[]): KeyPath {
  const remaining = [...indices];
  return key.path.map((part) => (part === "*" ? Number(remaining.shift()) : part));
}

function snakeCase(part: string): string {
  return part.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toUpperCase();
}

function isServiceLink(name: string, text: string): boolean {
  return serviceLink.test(name) || (name.endsWith("_PORT") && serviceAddress.test(text));
}
