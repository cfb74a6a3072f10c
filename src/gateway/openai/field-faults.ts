/** What is wrong with a body, as one sentence about one field. */
import type { z } from "zod";
import { invalidRequest, type PagodaError } from "../../errors.js";

/** Where in a body the fault is, and what should be there instead: `must be a number from 0 to 2`. */
export interface FieldFault {
  readonly path: readonly PropertyKey[];
  readonly message: string;
}

const longestPart = 64; // a key that a client made up may be megabytes long

/** A field as users write its path: `messages[1].content`. */
export function fieldPath(path: readonly PropertyKey[]): string {
  return path.map((part, index) => (typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${shortened(String(part))}`)).join("");
}

function shortened(part: string): string {
  return part.length <= longestPart ? part : `${part.slice(0, longestPart).toWellFormed()}…`;
}

/** The fault that a schema found. Of a value that fits none of several kinds, it is the one deepest inside it: the kind that was meant fits furthest. */
export function faultOf(issue: z.core.$ZodIssue): FieldFault {
  const inner = issue.code === "invalid_union" ? issue.errors.flat().filter(({ path }) => path.length > 0) : [];
  const [deepest] = inner.map(faultOf).sort((a, b) => b.path.length - a.path.length);
  return deepest === undefined ? issue : { path: [...issue.path, ...deepest.path], message: deepest.message };
}

/** The coded 400 for a fault in a body. */
export function badField(fault: FieldFault | undefined, body: unknown): PagodaError {
  if (fault === undefined || fault.path.length === 0) return invalidRequest({ message: "The body must be a JSON object." });
  const param = fieldPath(fault.path);
  const value = fault.path.reduce<unknown>((at, part) => (typeof at === "object" && at !== null ? Reflect.get(at, part) : undefined), body);
  const message = value === undefined ? `'${param}' is missing; it ${fault.message}.` : `'${param}' ${fault.message}, not ${shown(value)}.`;
  return invalidRequest({ message }, { param });
}

/** A value as an error message shows it: numbers and short words as they are, everything else by its kind and size. */
function shown(value: unknown): string {
  if (typeof value === "string") return value.length <= 40 ? `'${value}'` : `a string of ${value.length} characters`;
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  if (Array.isArray(value)) return value.length === 0 ? "an empty array" : `an array of ${value.length}`;
  const members = Object.keys(value as object).length;
  return members === 0 ? "an empty object" : `an object of ${members}`;
}
