/** Log probabilities in OpenAI's shape. */
import type { Vocabulary } from "../../tokenizer/index.js";
import type { ReportedToken } from "../choice-answer.js";

const leastLogprob = -9999; // OpenAI's value for what is too unlikely to tell; JSON has no infinity

interface TokenEntry {
  readonly token: string;
  readonly bytes: readonly number[];
  readonly logprob: number;
}

/** `logprobs` of a choice or chunk. */
export interface ChoiceLogprobs {
  readonly content: readonly (TokenEntry & { readonly top_logprobs: readonly TokenEntry[] })[];
  readonly refusal: null;
}

/** Describes tokens by their exact bytes; `token` shows bytes that are no whole character as U+FFFD. */
export function choiceLogprobs(tokens: readonly ReportedToken[], vocabulary: Vocabulary): ChoiceLogprobs {
  const content = tokens.map(({ token, logprob }) => ({
    ...entry(token, logprob.logprob, vocabulary),
    top_logprobs: logprob.top.map(([id, value]) => entry(id, value, vocabulary)),
  }));
  return { content, refusal: null };
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

function entry(token: number, logprob: number, vocabulary: Vocabulary): TokenEntry {
  const bytes = vocabulary.piece(token);
  return { token: utf8.decode(bytes), bytes: [...bytes], logprob: Number.isNaN(logprob) ? leastLogprob : Math.min(0, Math.max(leastLogprob, logprob)) };
}
