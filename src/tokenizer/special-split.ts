/** Splits rendered text at the spellings of control tokens, the way llama.cpp does before it tokenizes what is between them. */
import { createSpellingFinder } from "./spelling-finder.js";
import type { SpecialToken } from "./vocabulary.js";

/** A piece of a prompt: a control token, or text in which nothing is a control token. */
export type PromptPart = { readonly kind: "token"; readonly id: number } | { readonly kind: "text"; readonly text: string };

/** Where a token stands, together with the white space that it swallows. */
interface Cut {
  readonly id: number;
  readonly start: number;
  readonly end: number;
}

/**
 * Prepares the split for a vocabulary's control tokens. Longer spellings (in bytes) are taken before shorter ones wherever they stand, equally long ones
 * in the order given, and the same one from left to right; `lstrip` and `rstrip` tokens swallow the white space beside them.
 */
export function createSpecialSplitter(special: readonly SpecialToken[]): (text: string) => PromptPart[] {
  const ordered = [...special].sort((a, b) => Buffer.byteLength(b.text) - Buffer.byteLength(a.text));
  const ranks = new Map<string, number>();
  for (const [rank, { text }] of ordered.entries()) if (!ranks.has(text)) ranks.set(text, rank);
  const find = createSpellingFinder([...ranks.keys()]);

  return (text) => {
    const candidates: { readonly rank: number; readonly start: number }[] = [];
    find(text, (start, spelling) => candidates.push({ rank: ranks.get(spelling) ?? 0, start }));
    candidates.sort((a, b) => a.rank - b.rank || a.start - b.start);
    const isTaken = new Uint8Array(candidates.length === 0 ? 0 : text.length);
    const cuts = candidates.map(({ rank, start }) => takeCut(text, isTaken, ordered[rank], start)).filter((cut) => cut !== undefined);
    return partsBetween(
      text,
      cuts.sort((a, b) => a.start - b.start),
    );
  };
}

/** Takes the token's place in the text, unless another token has a part of it. */
function takeCut(text: string, isTaken: Uint8Array, token: SpecialToken | undefined, spellingStart: number): Cut | undefined {
  if (token === undefined) return undefined;
  let start = spellingStart;
  let end = start + token.text.length;
  if (isTaken.subarray(start, end).includes(1)) return undefined;
  if (token.lstrip) while (start > 0 && !isTaken[start - 1] && isSpace(text.charCodeAt(start - 1))) start -= 1;
  if (token.rstrip) while (end < text.length && !isTaken[end] && isSpace(text.charCodeAt(end))) end += 1;
  isTaken.fill(1, start, end);
  return { id: token.id, start, end };
}

/** C's `isspace` in its default locale. */
function isSpace(unit: number): boolean {
  return unit === 0x20 || (unit >= 0x09 && unit <= 0x0d);
}

function partsBetween(text: string, cuts: readonly Cut[]): PromptPart[] {
  const parts: PromptPart[] = [];
  let position = 0;
  for (const { id, start, end } of cuts) {
    if (start > position) parts.push({ kind: "text", text: text.slice(position, start) });
    parts.push({ kind: "token", id });
    position = end;
  }
  if (position < text.length) parts.push({ kind: "text", text: text.slice(position) });
  return parts;
}
