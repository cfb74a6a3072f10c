/** Values that are each allowed but cannot hold together. */
import { joinPath } from "./key-tree.js";
import type { Config, ModelConfig } from "./schema.js";

/** Several keys that exclude each other. */
export interface Conflict {
  /** Dotted paths, the one to change first. */
  readonly keys: readonly string[];
  readonly reason: string;
}

/** Every impossible combination, each once: one that all models inherit is told of the shared section. */
export function findConflicts(config: Config): readonly Conflict[] {
  const shared = sectionConflicts(config, "");
  const ofModels = config.models.flatMap((model, index) => sectionConflicts(model, `models.${index}.`));
  const sharedReasons = new Set(shared.map((conflict) => conflict.reason));
  return [...shared, ...ofModels.filter((conflict) => !sharedReasons.has(conflict.reason)), ...nameConflicts(config.models)];
}

type Sections = Pick<Config, "engine" | "scheduler" | "kv">;

/** @param prefix - where the sections are: nothing, or `models.0.`. */
function sectionConflicts({ engine, scheduler, kv }: Sections, prefix: string): readonly Conflict[] {
  const conflicts: Conflict[] = [];
  const add = (reason: string, ...keys: readonly string[]) => conflicts.push({ reason, keys: keys.map((key) => prefix + key) });
  const { maxSequences, maxBatchTokens } = scheduler;
  if (kv.tokens !== "auto" && kv.pageTokens > kv.tokens) {
    add(`a page of ${kv.pageTokens} tokens is larger than the whole cache of ${kv.tokens}`, "kv.pageTokens", "kv.tokens");
  } else if (kv.layout === "streams" && kv.tokens !== "auto" && maxSequences !== "auto" && kv.tokens < kv.pageTokens * maxSequences) {
    const least = kv.pageTokens * maxSequences;
    add(`${maxSequences} sequences with a page of ${kv.pageTokens} tokens each need at least ${least} tokens`, "kv.tokens", "scheduler.maxSequences");
  }
  if (maxSequences !== "auto" && maxBatchTokens < maxSequences) {
    add(`${maxSequences} running sequences need a step of at least ${maxSequences} tokens`, "scheduler.maxBatchTokens", "scheduler.maxSequences");
  }
  if (kv.type !== "f16" && engine.flashAttention === false) {
    add(`a KV cache of type ${kv.type} needs flash attention`, "kv.type", "engine.flashAttention");
  }
  if (engine.backend === "cpu" && engine.gpuLayers !== "auto" && engine.gpuLayers > 0) {
    add("the cpu backend holds no layers on a GPU", "engine.gpuLayers", "engine.backend");
  }
  return conflicts;
}

function nameConflicts(models: readonly ModelConfig[]): readonly Conflict[] {
  const conflicts: Conflict[] = [];
  const owners = new Map<string, string>();
  for (const [index, model] of models.entries()) {
    const names = [{ key: joinPath(["models", index, "name"]), name: model.name }];
    for (const name of model.aliases) names.push({ key: joinPath(["models", index, "aliases"]), name });
    for (const { key, name } of names) {
      const owner = owners.get(name);
      if (owner === undefined) owners.set(name, key);
      else conflicts.push({ keys: [...new Set([key, owner])], reason: `the name ${JSON.stringify(name)} can belong to one model only, and only once` });
    }
  }
  return conflicts;
}
