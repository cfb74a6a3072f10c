/**
 * Keeps text that came from a user from spelling control tokens.
 *
 * A template works on strings, so user text is marked: an invisible character, one that occurs nowhere else in the request, is put into every spelling
 * of a control token before the template runs, and taken out after the rendered text was split at the spellings that are left. Those can only have come
 * from the template. The mark is no white space, has no case and needs no escape in JSON, so trimming, `tojson` and the like leave it alone.
 */
import { invalidRequest } from "../errors.js";
import type { PromptPart } from "./special-split.js";
import { createSpellingFinder } from "./spelling-finder.js";

/** Guards the user text of one rendering. */
export interface SpellingGuard {
  /** A copy of a JSON value in which no string and no key spells a control token. */
  protect(value: unknown): unknown;
  /** A text without marks. */
  restore(text: string): string;
}

/** Makes guards against these spellings, each of at least two characters. A guard needs all texts of its rendering, to choose a mark that is in none. */
export function createSpellingGuards(spellings: readonly string[]): (texts: readonly string[]) => SpellingGuard {
  const markText = createMarker(spellings);
  return (texts) => {
    const mark = unusedCharacter(texts);
    const escaped = escapeOf(mark);
    return {
      protect: (value) => mapStrings(value, (text) => markText(text, mark)),
      restore: (text) => text.replaceAll(mark, "").replaceAll(escaped, ""),
    };
  };
}

/** The parts with their texts restored; texts that were only marks are left out. */
export function restoreParts(parts: readonly PromptPart[], guard: SpellingGuard): PromptPart[] {
  return parts
    .map((part) => (part.kind === "text" ? { kind: part.kind, text: guard.restore(part.text) } : part))
    .filter((part) => part.kind === "token" || part.text !== "");
}

/**
 * Returns a function that puts a mark into each spelling after its first character, and at an end of the text where what the template puts beside it,
 * its own text or another user's, could complete a spelling. Letter case is ignored, since a template may change it.
 * Not guarded is a template that puts both ends of a spelling around a user's text: that text is then meant to name the token.
 */
function createMarker(spellings: readonly string[]): (text: string, mark: string) => string {
  const lowered = spellings.map(lowerCase);
  const find = createSpellingFinder(lowered);
  const heads = new Set(lowered.flatMap((spelling) => properLengths(spelling).map((length) => spelling.slice(0, length))));
  const tails = new Set(lowered.flatMap((spelling) => properLengths(spelling).map((length) => spelling.slice(-length))));
  const longest = Math.max(1, ...lowered.map((spelling) => spelling.length));
  // A request has many short texts, such as the keys of tools: a look at single characters spares most of the comparing.
  const firstUnits = new Set(lowered.map((spelling) => spelling.charCodeAt(0)));
  const lastUnits = new Set(lowered.map((spelling) => spelling.charCodeAt(spelling.length - 1)));

  /** Whether the text ends with the beginning of a spelling. */
  function beginsHead(lower: string): boolean {
    for (let start = Math.max(0, lower.length - longest + 1); start < lower.length; start += 1) {
      if (firstUnits.has(lower.charCodeAt(start)) && heads.has(lower.slice(start))) return true;
    }
    return false;
  }

  /** Whether the text begins with the end of a spelling. */
  function endsTail(lower: string): boolean {
    for (let end = Math.min(longest - 1, lower.length); end > 0; end -= 1) {
      if (lastUnits.has(lower.charCodeAt(end - 1)) && tails.has(lower.slice(0, end))) return true;
    }
    return false;
  }

  /** The text with a mark after the first character of each spelling in it. */
  function withMarks(text: string, lower: string, mark: string): string {
    const pieces: string[] = [];
    let position = 0;
    find(lower, (start) => {
      if (start + 1 === position) return; // a second spelling that begins at the same place
      pieces.push(text.slice(position, start + 1));
      position = start + 1;
    });
    return pieces.length === 0 ? text : pieces.concat(text.slice(position)).join(mark);
  }

  return (text, mark) => {
    const lower = lowerCase(text);
    const inner = withMarks(text, lower, mark);
    return `${endsTail(lower) ? mark : ""}${inner}${beginsHead(lower) ? mark : ""}`;
  };
}

/** Lower case that keeps the length, so that positions stay valid. */
function lowerCase(text: string): string {
  return text.replaceAll("İ", "i").toLowerCase();
}

function properLengths(spelling: string): number[] {
  return Array.from({ length: Math.max(0, spelling.length - 1) }, (_, index) => index + 1);
}

/** A character for internal use that no text contains, neither itself nor as a JSON escape. */
function unusedCharacter(texts: readonly string[]): string {
  for (const [first, last] of [
    [0xfdd0, 0xfdef], // noncharacters: never part of interchanged text
    [0xe000, 0xf8ff], // private use
  ] as const) {
    for (let unit = first; unit <= last; unit += 1) {
      const candidate = String.fromCharCode(unit);
      const escaped = escapeOf(candidate);
      if (!texts.some((text) => text.includes(candidate) || text.includes(escaped))) return candidate;
    }
  }
  throw invalidRequest(
    { message: "The messages use every private-use character of Unicode; the server needs one that they do not use." },
    { param: "messages" },
  );
}

/** As JSON writes it where only ASCII is allowed. */
function escapeOf(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16)}`;
}

function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapStrings(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [change(key), mapStrings(item, change)]));
}
