/** Configuration from environment variables: `PAGODA_SERVER_BODY_LIMIT` or `PAGODA_SERVER_BODYLIMIT` for `server.bodyLimit`. */
import type { Assignment } from "./assignment.js";
import type { SourceResult } from "./file-source.js";
import { allKeys, type Key, type KeyPath } from "./key-tree.js";
import { nearestName } from "./nearest.js";
import { valueOfText } from "./text-value.js";

const prefix = "PAGODA_";

/** Kubernetes sets these for every service of a namespace; one that is called `pagoda` must not stop Pagoda from starting. */
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
      const near = nearestName(
        name,
        patterns.map(({ key }) => variableName(key.path)),
      );
      const hint = near === undefined ? "See 'pagoda config reference'." : `Did you mean ${near}?`;
      problems.push({ key: name, message: `${name}: no configuration key has this environment variable (value ${JSON.stringify(text)}). ${hint}` });
      continue;
    }
    const path = pathOf(known.key, known.pattern.exec(name)?.slice(1) ?? []);
    assignments.push({ path, value: valueOfText(text, path), origin: `environment variable ${name}` });
  }
  return { assignments, problems };
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
