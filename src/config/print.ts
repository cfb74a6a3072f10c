/** Writes a resolved configuration as a user would: the loader reads it back to the same configuration. */
import { stringify } from "yaml";
import { allKeys, type Key, type KeyPath } from "./key-tree.js";
import type { Config } from "./schema.js";
import { assign, type ConfigTree, valueAt } from "./tree.js";

/** YAML with every key that has a value, durations and sizes with their units. */
export function formatConfig(config: Config): string {
  const resolved: ConfigTree = { ...config };
  const written: ConfigTree = {};
  for (const key of allKeys()) {
    for (const path of placesOf(key, config.models.length)) {
      const value = key.format(valueAt(resolved, path));
      if (value !== undefined) assign(written, { path, value, origin: "" });
    }
  }
  return stringify(written);
}

/** A key below a list has one place in each of the list's entries; models are the only list. */
function placesOf(key: Key, models: number): readonly KeyPath[] {
  if (!key.path.includes("*")) return [key.path];
  return Array.from({ length: models }, (_, index) => key.path.map((part) => (part === "*" ? index : part)));
}
