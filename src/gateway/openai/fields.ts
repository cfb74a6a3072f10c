/** Kinds of request fields. `null` is the same as absence; what is out of range is refused with the range in the message. */
import { z } from "zod";

/** An optional field: `null` and absence both read as undefined. */
export function optional<T extends z.ZodType>(kind: T) {
  return kind.nullish().transform((value) => value ?? undefined);
}

/** A number from `min` to `max`, both included. */
export function number(min: number, max: number) {
  const range = `must be a number from ${min} to ${max}`;
  return z.number({ error: range }).min(min, range).max(max, range);
}

/** A number of at least `min`. */
export function numberFrom(min: number) {
  const range = `must be a number of at least ${min}`;
  return z.number({ error: range }).min(min, range);
}

/** A whole number from `min` to `max`, both included. */
export function integer(min: number, max: number = Number.MAX_SAFE_INTEGER) {
  const range = max === Number.MAX_SAFE_INTEGER ? `must be a whole number of at least ${min}` : `must be a whole number from ${min} to ${max}`;
  return z.number({ error: range }).int(range).min(min, range).max(max, range);
}

export function boolean() {
  return z.boolean({ error: "must be true or false" });
}

export function text() {
  return z.string({ error: "must be a string" });
}

/** One of a few words. */
export function word<const Words extends readonly [string, ...string[]]>(...words: Words) {
  return z.enum(words, { error: `must be one of ${words.map((name) => `'${name}'`).join(", ")}` });
}

/** An object of any members. */
export function anyObject() {
  return z.record(z.string(), z.unknown(), { error: "must be an object" });
}

/** A field as users write its path: `messages[1].content`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.map((part, index) => (typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`)).join("");
}
