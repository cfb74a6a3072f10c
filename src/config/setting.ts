/** The kinds of value that a configuration key can have: what is accepted, what it becomes, how it is written back. */
import { z } from "zod";
import { formatDuration, formatSize, parseDuration, parseSize } from "./units.js";

/** What the reference, the error messages and `config print` must know of a key, beside its type. */
export interface SettingNotes {
  /** Which values are accepted, to follow "allowed:". */
  readonly allowed: string;
  /** Back from the resolved value to what a user writes. */
  readonly format: (value: unknown) => unknown;
  /** Free text: not read as a number or a list when it comes from the environment or `--set`. */
  readonly isText: boolean;
}

/** What a key means and what it is when nobody sets it. */
export interface KeyNotes {
  readonly meaning: string;
  /** As a user would write it; undefined when the default depends on other keys. */
  readonly initial: unknown;
  /** Said in the reference instead of `initial`. */
  readonly initialText?: string;
}

/** Kinds of value, by schema. */
export const settingNotes = z.registry<SettingNotes>();
/** Keys, by the schema that `key` returned. */
export const keyNotes = z.registry<KeyNotes>();

/** Gives a key its meaning and its default. Returns a schema of its own, so that two keys may be of one kind. */
export function key<T extends z.ZodType>(kind: T, initial: z.input<T> | undefined, meaning: string, initialText?: string): T {
  const notes = settingNotes.get(kind);
  const schema = kind.clone();
  if (notes !== undefined) settingNotes.add(schema, notes);
  keyNotes.add(schema, { meaning, initial, ...(initialText === undefined ? {} : { initialText }) });
  return schema;
}

/** One of some words. */
export function choice<const Words extends readonly [string, ...string[]]>(...words: Words) {
  return noted(z.enum(words), words.join(" | "));
}

/** `on` or `off`; becomes a boolean. YAML's own true and false mean the same. */
export function toggle() {
  return noted(toggleValue(), "on | off", formatToggle);
}

/** `auto`, `on` or `off`. */
export function autoOrToggle() {
  return noted(z.union([z.literal("auto"), toggleValue()]), "auto | on | off", formatToggle);
}

export function integer(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  return noted(z.int().min(minimum).max(maximum), describeRange("a whole number", minimum, maximum));
}

/** `auto`, for what Pagoda finds out by itself, or a whole number. */
export function autoOrInteger(minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  return noted(z.union([z.literal("auto"), z.int().min(minimum).max(maximum)]), `auto | ${describeRange("a whole number", minimum, maximum)}`);
}

/** A word that stands for "no value", which then is undefined, or a whole number. */
export function wordOrInteger<const Word extends string>(word: Word, minimum: number, maximum = Number.MAX_SAFE_INTEGER) {
  const absent = z.literal(word).transform((): undefined => undefined);
  return noted(
    z.union([absent, z.int().min(minimum).max(maximum)]),
    `${word} | ${describeRange("a whole number", minimum, maximum)}`,
    (value) => value ?? word,
  );
}

/** A number with a fraction. */
export function decimal(minimum: number, maximum: number) {
  return noted(z.number().min(minimum).max(maximum), describeRange("a number", minimum, maximum));
}

/** Timers count milliseconds in 31 bits, and Node.js takes whatever does not fit for 1 ms: these are the whole hours that fit. */
const longestDurationMs = 596 * 3_600_000;

/** Becomes milliseconds. A number without a unit is refused: nobody could tell seconds from milliseconds. */
export function duration(minimumMs = 0) {
  return noted(
    z.string().transform((text, context) => parsedOr(context, parseDuration(text), minimumMs, longestDurationMs)),
    `a duration with its unit (ms, s, m, h), such as 250ms or 30s, from ${formatDuration(minimumMs)} to ${formatDuration(longestDurationMs)}`,
    (value) => formatDuration(Number(value)),
  );
}

/** Becomes bytes. A number without a unit is bytes. */
export function size(minimumBytes = 0) {
  const least = minimumBytes > 0 ? `, at least ${formatSize(minimumBytes)}` : "";
  return noted(
    z.union([z.string(), z.int()]).transform((given, context) => parsedOr(context, typeof given === "number" ? given : parseSize(given), minimumBytes)),
    `a size (KiB, MiB, GiB, KB, MB, GB; a plain number is bytes), such as 8MiB${least}`,
    (value) => formatSize(Number(value)),
  );
}

/** Free text that is not empty. */
export function text(allowed: string, pattern?: RegExp) {
  const filled = z.string().min(1);
  return noted(pattern === undefined ? filled : filled.regex(pattern), allowed, undefined, true);
}

export function textList(allowed: string, pattern?: RegExp) {
  const filled = z.string().min(1);
  return noted(z.array(pattern === undefined ? filled : filled.regex(pattern)), allowed);
}

function noted<T extends z.ZodType>(schema: T, allowed: string, format: (value: unknown) => unknown = (value) => value, isText = false): T {
  settingNotes.add(schema, { allowed, format, isText });
  return schema;
}

function toggleValue() {
  return z.union([z.boolean(), z.enum(["on", "off"]).transform((word) => word === "on")]);
}

function formatToggle(value: unknown): unknown {
  return typeof value === "boolean" ? (value ? "on" : "off") : value;
}

function parsedOr(context: z.RefinementCtx, parsed: number | undefined, minimum: number, maximum = Number.MAX_SAFE_INTEGER): number {
  if (parsed !== undefined && parsed >= minimum && parsed <= maximum) return parsed;
  context.addIssue({ code: "custom", message: "not a quantity with a known unit, or out of range" });
  return z.NEVER;
}

function describeRange(what: string, minimum: number, maximum: number): string {
  return maximum === Number.MAX_SAFE_INTEGER ? `${what}, at least ${minimum}` : `${what} from ${minimum} to ${maximum}`;
}
