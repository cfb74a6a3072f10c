/** Finds configuration keys in the schema by their path. */
import { z } from "zod";
import { configSections } from "./schema.js";
import { type KeyNotes, keyNotes, type SettingNotes, settingNotes } from "./setting.js";

export type KeyPath = readonly (string | number)[];

/** A key that takes a value. `path` has `*` for the index of a list. */
export interface Key extends KeyNotes, SettingNotes {
  readonly path: readonly string[];
  readonly schema: z.ZodType;
  /** Whether the section is complete without it. */
  readonly isOptional: boolean;
}

/** What a path leads to. */
export type Found =
  | { readonly kind: "key"; readonly key: Key }
  | { readonly kind: "section"; readonly keys: readonly string[] }
  | { readonly kind: "list" }
  /** The first `depth` parts are known, and lead to something that has these keys. */
  | { readonly kind: "unknown"; readonly depth: number; readonly keys: readonly string[] };

/** `models.0.name` for ["models", 0, "name"]. */
export function joinPath(path: KeyPath): string {
  return path.join(".");
}

/** ["models", 0, "name"] for `models.0.name`. */
export function splitPath(dotted: string): KeyPath {
  return dotted.split(".").map((part) => (/^\d+$/.test(part) ? Number(part) : part));
}

/** Follows a path from the top of the configuration. */
export function findKey(path: KeyPath): Found {
  let schema: z.ZodType = configSections;
  for (const [depth, part] of path.entries()) {
    const next = child(schema, part);
    if (next === undefined) return { kind: "unknown", depth, keys: keysOf(schema) };
    schema = next;
  }
  const inner = unwrap(schema);
  if (settingNotes.has(inner)) return { kind: "key", key: describeKey(path, schema) };
  return inner instanceof z.ZodArray ? { kind: "list" } : { kind: "section", keys: keysOf(inner) };
}

let everyKey: readonly Key[] | undefined;

/** Every key that takes a value, in the order of the schema. */
export function allKeys(): readonly Key[] {
  everyKey ??= keysUnder(configSections, []);
  return everyKey;
}

function keysUnder(schema: z.ZodType, path: readonly string[]): readonly Key[] {
  const inner = unwrap(schema);
  if (settingNotes.has(inner)) return [describeKey(path, schema)];
  const parts = inner instanceof z.ZodArray ? ["*"] : keysOf(inner);
  return parts.flatMap((part) => {
    const next = child(inner, part);
    return next === undefined ? [] : keysUnder(next, [...path, part]);
  });
}

function child(schema: z.ZodType, part: string | number): z.ZodType | undefined {
  const inner = unwrap(schema);
  if (settingNotes.has(inner)) return undefined;
  if (inner instanceof z.ZodArray) return typeof part === "number" || part === "*" ? asType(inner.element) : undefined;
  if (!(inner instanceof z.ZodObject) || !Object.hasOwn(inner.shape, part)) return undefined;
  return asType(inner.shape[part]);
}

function keysOf(schema: z.ZodType): readonly string[] {
  const inner = unwrap(schema);
  return inner instanceof z.ZodObject ? Object.keys(inner.shape) : [];
}

function describeKey(path: KeyPath, schema: z.ZodType): Key {
  const inner = unwrap(schema);
  const setting = settingNotes.get(inner);
  const notes = keyNotes.get(inner);
  if (setting === undefined || notes === undefined) throw new TypeError(`The key ${joinPath(path)} has no notes: make it with key().`);
  return { ...setting, ...notes, path: path.map(String), schema: inner, isOptional: schema !== inner };
}

function unwrap(schema: z.ZodType): z.ZodType {
  return schema instanceof z.ZodOptional ? unwrap(asType(schema.unwrap())) : schema;
}

/** Zod types the parts of its containers by its smaller core interface, though every one of them is a full schema. */
function asType(schema: unknown): z.ZodType {
  if (schema instanceof z.ZodType) return schema;
  throw new TypeError("Not a schema.");
}
