/** Everything that turns requests into tokens and tokens into text for one loaded model. */
import { type ChatInput, type ChatTemplate, createChatTemplate } from "./chat-template.js";
import { createOutputText, type OutputText } from "./output-text.js";
import type { PromptPart } from "./special-split.js";
import { findTemplate } from "./template-engine.js";
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
  /** Token ids of a conversation: template, control tokens, one call to the tokenizer, and the BOS token once if the model wants one. */
  encodeChat(input: ChatInput, signal?: AbortSignal): Promise<number[]>;
  /** Token ids of a text. `parseSpecial`: spellings of control tokens become them; `addSpecial`: with the BOS and EOS tokens that the model wants. */
  encodeText(text: string, options: { readonly addSpecial: boolean; readonly parseSpecial: boolean }, signal?: AbortSignal): Promise<number[]>;
  /** The text of one answer. */
  createOutputText(options?: { readonly stop?: readonly string[] }): OutputText;
}

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
  return {
    vocabulary,
    template,
    encodeChat: async (input, signal) => withBos(await encodeParts(template.render(input), tokenize, signal), vocabulary),
    async encodeText(text, { addSpecial, parseSpecial }, signal) {
      const [ids = []] = await tokenize([{ text, parseSpecial }], { addSpecial }, signal);
      return [...ids];
    },
    createOutputText: ({ stop = [] } = {}) => createOutputText({ vocabulary, stop }),
  };
}

async function encodeParts(parts: readonly PromptPart[], tokenize: Tokenize, signal?: AbortSignal): Promise<number[]> {
  const segments = parts.filter((part) => part.kind === "text").map(({ text }) => ({ text, parseSpecial: false }));
  const encoded = segments.length === 0 ? [] : await tokenize(segments, { addSpecial: false }, signal);
  const remaining = encoded.values();
  return parts.flatMap((part) => (part.kind === "token" ? [part.id] : [...(remaining.next().value ?? [])]));
}

function withBos(ids: number[], { addBos, bos }: Vocabulary): number[] {
  return !addBos || bos === undefined || ids[0] === bos.id ? ids : [bos.id, ...ids];
}
