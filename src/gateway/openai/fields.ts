/** Kinds of request fields. `null` is the same as absence; what is out of range is refused with the range in the message. */
import { z } from "zod";
import { type FieldFault, faultOf } from "./field-faults.js";

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

/** A string, of any length unless there is a limit. */
export function text(maxCharacters?: number) {
  if (maxCharacters === undefined) return z.string({ error: "must be a string" });
  const range = `must be a string of at most ${maxCharacters} characters`;
  return z.string({ error: range }).max(maxCharacters, range);
}

/** One of a few words. */
export function word<const Words extends readonly [string, ...string[]]>(...words: Words) {
  return z.enum(words, { error: `must be one of ${words.map((name) => `'${name}'`).join(", ")}` });
}

/** An object of any members, taken as it is. `maxValues` counts what is in it at any depth. */
export function anyObject(maxValues?: number) {
  const message = maxValues === undefined ? "must be an object" : `must be an object of at most ${maxValues} values, those inside its members included`;
  return z.custom<Readonly<Record<string, unknown>>>(
    (value) => typeof value === "object" && value !== null && !Array.isArray(value) && (maxValues === undefined || valuesIn(value) <= maxValues),
    { error: message },
  );
}

/** All values inside of a value. Its nesting is bounded. */
function valuesIn(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return Object.values(value).reduce((sum: number, member) => sum + 1 + valuesIn(member), 0);
}

/**
 * An array of up to `max` entries of one kind. The length is looked at first, and the first entry at fault ends the check: collecting the faults of a
 * hundred thousand entries would take seconds, and only one is told. `message` says what the array must be.
 */
export function list<T extends z.ZodType>(kind: T, max: number, message: string) {
  return z.array(z.unknown(), { error: message }).transform((entries, context): z.output<T>[] => {
    if (entries.length > max) return refuse(context, { path: [], message });
    const read: z.output<T>[] = [];
    for (const [index, entry] of entries.entries()) {
      const result = kind.safeParse(entry);
      const [issue] = result.error?.issues ?? [];
      if (issue !== undefined) {
        const { path, message } = faultOf(issue);
        return refuse(context, { path: [index, ...path], message });
      }
      read.push(result.data as z.output<T>);
    }
    return read;
  });
}

/** Reports a fault from inside a transformation. */
export function refuse(context: z.RefinementCtx, { path, message }: FieldFault): never {
  context.addIssue({ code: "custom", path: [...path], message });
  return z.NEVER;
}
