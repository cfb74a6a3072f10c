/** Everything that turns requests into tokens and tokens into text for one loaded model. */
import { contextTooLong } from "../errors.js";
import { type ChatInput, type ChatTemplate, createChatTemplate } from "./chat-template.js";
import { createOutputText, type OutputText } from "./output-text.js";
import type { PromptPart } from "./special-split.js";
import { findTemplate } from "./template-engine.js";
import { createTokenBound } from "./token-bound.js";
import { createVocabulary, type Vocabulary, type VocabularyInfo } from "./vocabulary.js";

/** Asks the model's own tokenizer for the ids of each segment. */
export type Tokenize = (
  segments: readonly { readonly text: string; readonly parseSpecial: boolean }[],
  options: { readonly addSpecial: boolean },
  signal?: AbortSignal,
) => Promise<readonly (readonly number[])[]>;

export interface ChatTokenizer {
  readonly vocabulary: Vocabulary;
  readonly template: ChatTemplate;
  /**
   * Token ids of a conversation: template, control tokens, one call to the tokenizer, and the BOS token once if the model wants one.
   * Throws `context_length_exceeded` for a long text that cannot have fewer tokens than `contextTokens`, without tokenizing it;
   * a prompt that comes back may still be too long.
   */
  encodeChat(input: ChatInput, options?: EncodeChatOptions): Promise<number[]>;
  /** Token ids of a text. `parseSpecial`: spellings of control tokens become them; `addSpecial`: with the BOS and EOS tokens that the model wants. */
  encodeText(text: string, options: { readonly addSpecial: boolean; readonly parseSpecial: boolean }, signal?: AbortSignal): Promise<number[]>;
  /** The text of one answer. */
  createOutputText(options?: { readonly stop?: readonly string[] }): OutputText;
}

export interface EncodeChatOptions {
  readonly contextTokens?: number;
  readonly signal?: AbortSignal;
}

/** Up to this many characters a prompt that is too long is tokenized, so that the client learns its exact length; that takes a few milliseconds. */
const exactCharacters = 65_536;

export interface ChatTokenizerOptions {
  readonly tokens: VocabularyInfo;
  /** The model's own template, if it has one. */
  readonly chatTemplate: string | undefined;
  /** A builtin template's name or a file to use instead. */
  readonly templateOverride?: string | undefined;
  readonly tokenize: Tokenize;
}

/** Prepares a model's tokenizer at load. Throws `chat_template_invalid`. */
export function createChatTokenizer({ tokens, chatTemplate, templateOverride, tokenize }: ChatTokenizerOptions): ChatTokenizer {
  const vocabulary = createVocabulary(tokens);
  const template = createChatTemplate(findTemplate(chatTemplate, templateOverride), vocabulary);
  const boundOf = createTokenBound(vocabulary);
  return {
    vocabulary,
    template,
    async encodeChat(input, { contextTokens = Number.POSITIVE_INFINITY, signal } = {}) {
      const parts = template.render(input);
      const least = isLong(parts) ? leastTokens(parts, boundOf) : 0;
      if (least >= contextTokens) throw tooLong(least, contextTokens);
      return withBos(await encodeParts(parts, tokenize, signal), vocabulary);
    },
    async encodeText(text, { addSpecial, parseSpecial }, signal) {
      const [ids = []] = await tokenize([{ text, parseSpecial }], { addSpecial }, signal);
      return [...ids];
    },
    createOutputText: ({ stop = [] } = {}) => createOutputText({ vocabulary, stop }),
  };
}

function isLong(parts: readonly PromptPart[]): boolean {
  return parts.reduce((characters, part) => characters + (part.kind === "text" ? part.text.length : 0), 0) > exactCharacters;
}

/** The tokens that the parts have at least. Each part is tokenized by itself, so their bounds add up. */
function leastTokens(parts: readonly PromptPart[], boundOf: (text: string) => number): number {
  const texts = parts.flatMap((part) => (part.kind === "text" ? [part.text] : []));
  // One bound of all texts together is a little lower than the sum of their own, and costs one pass however many there are.
  return parts.length - texts.length + boundOf(texts.join(""));
}

function tooLong(least: number, contextTokens: number): Error {
  const details = { n_prompt_tokens: least, n_ctx: contextTokens };
  return contextTooLong({ promptTokens: least, contextTokens, isLowerBound: true }, { param: "messages", details });
}

async function encodeParts(parts: readonly PromptPart[], tokenize: Tokenize, signal?: AbortSignal): Promise<number[]> {
  const segments = parts.filter((part) => part.kind === "text").map(({ text }) => ({ text, parseSpecial: false }));
  const encoded = segments.length === 0 ? [] : await tokenize(segments, { addSpecial: false }, signal);
  const remaining = encoded.values();
  const ids: number[] = [];
  // One by one: a part may have more tokens than a call may have arguments.
  for (const part of parts) {
    if (part.kind === "token") ids.push(part.id);
    else for (const id of remaining.next().value ?? []) ids.push(id);
  }
  return ids;
}

function withBos(ids: number[], { addBos, bos }: Vocabulary): number[] {
  return !addBos || bos === undefined || ids[0] === bos.id ? ids : [bos.id, ...ids];
}
