/** Reads JSON bodies: valid UTF-8, bounded nesting, whole characters. */
import { invalidRequest } from "../errors.js";

/** Deeper values have no use in a request and would exhaust the stack of whatever walks them. */
export const maxNesting = 128;

/** The value of a JSON body. Throws a coded 400 that says what is wrong with it. */
export function parseJsonBody(body: Buffer): unknown {
  if (isNestedDeeper(body, maxNesting)) throw invalidRequest({ message: `The body is nested more than ${maxNesting} levels deep.` });
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

function isNestedDeeper(body: Buffer, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < body.length; at++) {
    const byte = body[at];
    if (byte === quote) at = endOfString(body, at);
    else if (byte === 0x5b || byte === 0x7b) depth++;
    else if (byte === 0x5d || byte === 0x7d) depth--;
    if (depth > limit) return true;
  }
  return false;
}

/** Position of the quote that ends the string which begins at `start`; strings are most of a body, so they are searched natively. */
function endOfString(body: Buffer, start: number): number {
  let end = body.indexOf(quote, start + 1);
  while (end !== -1 && isEscaped(body, end)) end = body.indexOf(quote, end + 1);
  return end === -1 ? body.length : end;
}

function isEscaped(body: Buffer, at: number): boolean {
  let backslashes = 0;
  while (body[at - 1 - backslashes] === backslash) backslashes++;
  return backslashes % 2 === 1;
}

/** Replaces halves of surrogate pairs, which no encoder takes, by U+FFFD, in keys too. */
function wellFormed(value: unknown): unknown {
  if (typeof value === "string") return wholeCharacters(value);
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, member]) => [wholeCharacters(key), wellFormed(member)]));
}

function wholeCharacters(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\uFFFD"); // a complete pair is one character of another category
}
