/** Puts the sources together: defaults < file < environment < command line. Every problem of every source is told at once. */
import { configInvalid } from "../errors.js";
import { type Assignment, checkAssignment, type Problem, show } from "./assignment.js";
import { type Conflict, findConflicts } from "./conflicts.js";
import { readEnvironment } from "./environment-source.js";
import { parseConfigText, readConfigFile, type SourceResult } from "./file-source.js";
import { allKeys, joinPath, splitPath } from "./key-tree.js";
import { type Config, configSchema, defaultModelSource } from "./schema.js";
import { readFlags, readSets, type ServeFlags } from "./set-source.js";
import { assign, type ConfigTree, valueAt } from "./tree.js";

/** Where configuration comes from, in rising precedence. */
export interface ConfigSources {
  /** Path of a YAML file. */
  readonly file?: string;
  /** A file's content instead of a path. */
  readonly fileText?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  /** What followed each `--set`. */
  readonly sets?: readonly string[];
  readonly flags?: ServeFlags;
}

/**
 * The resolved configuration.
 * @throws PagodaError `config_invalid` with every problem there is.
 */
export function loadConfig(sources: ConfigSources = {}): Config {
  const results = readSources(sources);
  const problems = results.flatMap((result) => result.problems);
  const tree: ConfigTree = {};
  const origins = new Map<string, string>();
  for (const assignment of [...defaultAssignments(), ...results.flatMap((result) => result.assignments)]) {
    const problem = checkAssignment(assignment) ?? assign(tree, assignment);
    if (problem === undefined) origins.set(joinPath(assignment.path), assignment.origin);
    else problems.push(problem);
  }
  problems.push(...missingSources(tree, problems));
  const config = configSchema.parse(tree);
  problems.push(...conflictProblems(findConflicts(config), problems, tree, origins));
  if (problems.length > 0) throw configInvalid({ problems: problems.map((problem) => problem.message) });
  return config;
}

function readSources(sources: ConfigSources): readonly SourceResult[] {
  const results: SourceResult[] = [];
  if (sources.file !== undefined) results.push(readConfigFile(sources.file));
  if (sources.fileText !== undefined) results.push(parseConfigText(sources.fileText, "configuration"));
  if (sources.environment !== undefined) results.push(readEnvironment(sources.environment));
  results.push(readSets(sources.sets ?? []), { assignments: readFlags(sources.flags ?? {}), problems: [] });
  return results;
}

function defaultAssignments(): readonly Assignment[] {
  const keys = allKeys().filter((key) => key.initial !== undefined && !key.path.includes("*"));
  const ofKeys = keys.map((key) => ({ path: key.path, value: key.initial, origin: "default" }));
  return [...ofKeys, { path: ["models", 0, "source"], value: defaultModelSource, origin: "default" }];
}

/** Models without a source, which only the whole configuration shows. They get one, so that the rest can be checked all the same. */
function missingSources(tree: ConfigTree, problems: readonly Problem[]): readonly Problem[] {
  const models = valueAt(tree, ["models"]);
  if (!Array.isArray(models)) return [];
  return models.flatMap((_, index) => {
    const path = ["models", index, "source"];
    const key = joinPath(path);
    if (valueAt(tree, path) !== undefined) return [];
    assign(tree, { path, value: `builtin:missing-${index}`, origin: "missing" });
    const isKnownProblem = problems.some((problem) => key === problem.key || key.startsWith(`${problem.key}.`));
    return isKnownProblem ? [] : [{ key, message: `${key}: missing. Allowed: builtin:NAME | the path of a GGUF file.` }];
  });
}

/** A conflict over a key that already has a problem would only confuse. */
function conflictProblems(conflicts: readonly Conflict[], problems: readonly Problem[], tree: ConfigTree, origins: ReadonlyMap<string, string>) {
  const faulty = new Set(problems.map((problem) => problem.key));
  return conflicts
    .filter((conflict) => !conflict.keys.some((key) => faulty.has(key)))
    .map(({ keys, reason }): Problem => {
      const values = keys.map((key) => describeValue(key, tree, origins));
      return { key: keys[0] ?? "", message: `${values.join(" and ")} cannot hold${values.length > 1 ? " together" : ""}: ${reason}.` };
    });
}

/** The value with its origin; a model's key that is not set there has its section's. */
function describeValue(key: string, tree: ConfigTree, origins: ReadonlyMap<string, string>): string {
  const path = splitPath(key);
  const value = valueAt(tree, path);
  if (value !== undefined) return `${key} ${show(value)} (${origins.get(key) ?? "default"})`;
  const isModelKey = path[0] === "models" && path.length > 3;
  return isModelKey ? describeValue(joinPath(path.slice(2)), tree, origins) : `${key} (from ${joinPath(path.slice(0, -1))}.source)`;
}
