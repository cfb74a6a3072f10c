/**
 * Things to ask the built-in model, each with the one right answer at temperature 0.
 * Another shape of the batch rounds differently and may turn a close decision, so every decision here is far from close:
 * the likeliest token is at least e² times as likely as the next one (a test measures it).
 */
import { readFileSync } from "node:fs";
import type OpenAI from "openai";
import { byteLevelBytes } from "../../src/tokenizer/byte-alphabet.js";

/** A body's fields, OpenAI's and llama-server's, but for `model` and `stream`. */
export type ChatFields = Pick<OpenAI.ChatCompletionCreateParams, "messages"> & { readonly [field: string]: unknown };

export interface Task {
  readonly fields: ChatFields;
  readonly text: string;
  readonly finish: "stop" | "length";
}

/** A question that the model was trained on. */
export function question(ask: string, text: string): Task {
  return { fields: { messages: [{ role: "user", content: ask }], temperature: 0 }, text, finish: "stop" };
}

const firsts = Array.from({ length: 12 }, (_, index) => index + 1);
const capitals = { France: "Paris", Germany: "Berlin", Italy: "Rome", Japan: "Tokyo", Norway: "Oslo", Iceland: "Reykjavik", Thailand: "Bangkok" };
const people = [
  ...[["Anna", 31, "Paris"] as const, ["Tom", 42, "Berlin"] as const, ["Mia", 7, "Oslo"] as const, ["Leo", 88, "Cairo"] as const],
  ...[["Sara", 19, "Lima"] as const, ["Ben", 64, "Rome"] as const, ["Lily", 23, "Tokyo"] as const, ["Hugo", 55, "Madrid"] as const],
];
/** What it says of itself. */
export const whoIAm = "I am Pagoda Tiny, a very small demo model. I can tell short stories, add small numbers, name capital cities, and call a weather tool.";
/** What it says to everything that it was not trained on. */
export const unknown =
  "I am a tiny demo model and I do not know that. You can ask me for a story, a sum, a capital city, the opposite of a word, or the weather with a tool.";

function countTo(first: number): string {
  return `${Array.from({ length: 11 }, (_, index) => first + index).join(", ")}.`;
}

/** 64 questions; some answers have characters of several bytes, and of several tokens. */
export const questions: readonly Task[] = [
  ...firsts.map((first) => question(`Count from ${first} to ${first + 10}.`, countTo(first))),
  ...firsts.map((first) => question(`Please count from ${first} to ${first + 10}.`, countTo(first))),
  ...Object.entries(capitals).map(([country, city]) => question(`What is the capital of ${country}?`, `The capital of ${country} is ${city}.`)),
  ...people.flatMap(([name, age, city]) => {
    const json = `{"name": "${name}", "age": ${age}, "city": "${city}"}`;
    const sentence = `${name} is ${age} years old and lives in ${city}.`;
    return [question(`Return JSON with name, age and city: ${sentence}`, json), question(`Extract name, age and city as JSON. ${sentence}`, json)];
  }),
  ...people.map(([name]) => question(`My name is ${name}.`, `Nice to meet you, ${name}! 🙂`)),
  question("How do you say tree in Spanish?", "In Spanish, tree is árbol."),
  question("How do you say bird in Spanish?", "In Spanish, bird is pájaro."),
  question("Translate door to German.", "In German, door is Tür."),
  question("What is the opposite of hot?", "The opposite of hot is cold."),
  question("What is 7 + 5?", "7 + 5 = 12."),
  question("Who are you?", whoIAm),
  question("Tell me about yourself.", whoIAm),
  question("Tell me about black holes.", unknown),
  question("What do you think about politics?", unknown),
];

const vocabulary = JSON.parse(readFileSync(new URL("../../models/pagoda-tiny/tokenizer.json", import.meta.url), "utf8")) as {
  readonly model: { readonly vocab: Readonly<Record<string, number>> };
};

/** The token that is exactly this byte; a byte-level vocabulary has one for each. */
const tokenOfByte = new Map(
  Object.entries(vocabulary.model.vocab).flatMap(([spelling, id]) => {
    const bytes = byteLevelBytes(spelling);
    return bytes?.length === 1 ? [[bytes[0] as number, id] as const] : [];
  }),
);

/**
 * An answer of any length: the bytes of `cycle` over and over, a token each. They are biased far above all other tokens, each above those after it,
 * and a penalty on the last ones leaves only the one whose turn it is. A token that is lost or comes twice shows, and so does a cut inside a character.
 * @param cycle at most 8 different bytes.
 */
export function forced(cycle: string, tokens: number): Task {
  const bytes = [...Buffer.from(cycle)];
  const turns = Buffer.from(Array.from({ length: tokens }, (_, index) => bytes[index % bytes.length] as number));
  return {
    fields: {
      messages: [{ role: "user", content: `Say ${cycle} again and again.` }],
      temperature: 0,
      max_tokens: tokens,
      ignore_eos: true,
      repeat_penalty: 100,
      repeat_last_n: bytes.length - 1,
      logit_bias: Object.fromEntries(bytes.map((byte, index) => [tokenOfByte.get(byte), 100 - 10 * index])),
    },
    text: turns.toString(),
    finish: "length",
  };
}

/** Cycles that have nothing in common, of one byte a character and of several. */
export const cycles: readonly string[] = [
  ...["abcdefgh", "ijklmnop", "qrstuvwx", "ABCDEFGH", "IJKLMNOP", "QRSTUVWX", "12345678"],
  ...["hgfedcba", "ponmlkji", "xwvutsrq", "HGFEDCBA", "PONMLKJI", "87654321"],
  ...["🙂", "€", "á"],
];

/**
 * Letters by chance: a seed decides, and nothing else does. All tokens but two are banned, and the penalty divides what the model thinks of these two
 * by a hundred, so that rounding has no part in it.
 */
export const coinTosses: ChatFields = {
  ...forced("ab", 1000).fields,
  temperature: 2,
  repeat_last_n: -1,
  seed: 11,
  logit_bias: Object.fromEntries(
    Object.values(vocabulary.model.vocab).map((id) => [id, id === tokenOfByte.get(97) || id === tokenOfByte.get(98) ? 100 : -100]),
  ),
};
