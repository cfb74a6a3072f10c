/** `logit_bias` in its forms: `{"15": -100}`, `{"text": 5}`, `[[15, false]]`. -100 and false ban. */
import { z } from "zod";
import type { FieldFault } from "./field-faults.js";
import { refuse } from "./fields.js";

/** A bias as a request gives it: `token` is an id or a text still to be tokenized; a bias of null bans the token. */
export interface RequestedBias {
  readonly token: number | string;
  readonly bias: number | null;
}

const maxEntries = 10_000;
const maxTexts = 1000;
const maxTextCharacters = 65_536;

const message = `must map at most ${maxEntries} token ids, or texts, to numbers from -100 to 100`;
const biasMessage = "must be a number from -100 to 100, or false";
const pairMessage = "must be a pair of a token id, or a text, and a bias";

/** The field's schema. Entries are read by hand up to the first that is wrong: there may be thousands, for each of which a general schema takes long. */
export const logitBias = z
  .custom<object>((value) => typeof value === "object" && value !== null, { error: message })
  .transform((value, context): RequestedBias[] => {
    const read = Array.isArray(value) ? biasesOfPairs(value) : biasesOfObject(value);
    return Array.isArray(read) ? boundedTexts(read, context) : refuse(context, read);
  });

function biasesOfPairs(pairs: readonly unknown[]): RequestedBias[] | FieldFault {
  if (pairs.length > maxEntries) return { path: [], message };
  const biases: RequestedBias[] = [];
  for (const [index, pair] of pairs.entries()) {
    if (!Array.isArray(pair) || pair.length !== 2) return { path: [index], message: pairMessage };
    const [token, value]: readonly unknown[] = pair;
    if (typeof token !== "string" && !Number.isSafeInteger(token)) return { path: [index, 0], message: "must be a token id or a text" };
    const bias = biasOf(value);
    if (bias === undefined) return { path: [index, 1], message: biasMessage };
    biases.push({ token: token as number | string, bias });
  }
  return biases;
}

function biasesOfObject(byToken: object): RequestedBias[] | FieldFault {
  const entries: readonly (readonly [string, unknown])[] = Object.entries(byToken);
  if (entries.length > maxEntries) return { path: [], message };
  const biases: RequestedBias[] = [];
  for (const [key, value] of entries) {
    const bias = biasOf(value);
    if (bias === undefined) return { path: [key], message: biasMessage };
    biases.push({ token: /^-?\d+$/.test(key) ? Number(key) : key, bias });
  }
  return biases;
}

function biasOf(value: unknown): number | null | undefined {
  if (value === false || value === -100) return null;
  return typeof value === "number" && value > -100 && value <= 100 ? value : undefined;
}

/** Texts are tokenized one by one, so there may be fewer of them than of ids. */
function boundedTexts(biases: RequestedBias[], context: z.RefinementCtx): RequestedBias[] {
  const texts = biases.flatMap(({ token }) => (typeof token === "string" ? [token] : []));
  const characters = texts.reduce((sum, { length }) => sum + length, 0);
  if (texts.length <= maxTexts && characters <= maxTextCharacters) return biases;
  return refuse(context, { path: [], message: `must have at most ${maxTexts} texts, of ${maxTextCharacters} characters in all` });
}
