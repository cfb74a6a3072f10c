/** Reads JSON bodies: valid UTF-8, bounded nesting, a bounded number of values, whole characters. */
import { invalidRequest } from "../errors.js";

/** Deeper values have no use in a request and would exhaust the stack of whatever walks them. */
export const maxNesting = 128;

/** Every value costs time in each of the steps that a request goes through, and no other request is served meanwhile. */
export const maxValues = 32_768;

/** The value of a JSON body. Throws a coded 400 that says what is wrong with it. */
export function parseJsonBody(body: Buffer): unknown {
  const { nesting, values } = measure(body);
  if (nesting > maxNesting) throw invalidRequest({ message: `The body is nested more than ${maxNesting} levels deep.` });
  if (values > maxValues) throw invalidRequest({ message: `The body has more than ${maxValues} values (members of objects and entries of arrays).` });
  const text = decodeUtf8(body);
  try {
    const value: unknown = JSON.parse(text);
    // Only a \u escape can bring half a surrogate pair into text that was valid UTF-8.
    return /\\ud[89a-f]/i.test(text) ? wellFormed(value) : value;
  } catch (cause) {
    throw invalidRequest({ message: `The body is not valid JSON: ${cause instanceof Error ? cause.message : String(cause)}` }, { cause });
  }
}

function decodeUtf8(body: Buffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body);
  } catch (cause) {
    throw invalidRequest({ message: "The body is not valid UTF-8." }, { cause });
  }
}

const quote = 0x22;
const backslash = 0x5c;

interface Size {
  /** Levels of the deepest value. */
  readonly nesting: number;
  /** Values at most: commas, and one more for each array or object and for the whole. */
  readonly values: number;
}

/** Measures a body without reading it, in one pass over its bytes: reading one of millions of values takes seconds. Ends early past a limit. */
function measure(body: Buffer): Size {
  let depth = 0;
  let nesting = 0;
  let values = 1;
  let isString = false;
  for (let at = 0; at < body.length && nesting <= maxNesting && values <= maxValues; at++) {
    const byte = body[at];
    if (byte === quote) isString = !isString;
    else if (isString) {
      if (byte === backslash) at++; // what it escapes ends no string
    } else if (byte === 0x5b || byte === 0x7b) {
      depth++;
      values++;
      if (depth > nesting) nesting = depth;
    } else if (byte === 0x5d || byte === 0x7d) depth--;
    else if (byte === 0x2c) values++;
  }
  return { nesting, values };
}

/** Replaces halves of surrogate pairs, which no encoder takes, by U+FFFD, in keys too. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [key.toWellFormed(), wellFormed(member)]));
}
