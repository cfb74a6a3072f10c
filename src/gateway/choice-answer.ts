/** Turns one choice's tokens into text: whole characters, cut at a stop string, each token's log probability with its text. */
import type { ChoiceEvent, TokenLogprob } from "../engine/client/engine-client.js";
import { createOutputText, type Vocabulary } from "../tokenizer/index.js";

export interface ReportedToken {
  readonly token: number;
  readonly logprob: TokenLogprob;
}

/** What one event adds to a choice's answer. */
export interface AnswerPiece {
  readonly index: number;
  readonly text: string;
  /** The tokens whose text is now complete; empty unless log probabilities are wanted. */
  readonly tokens: readonly ReportedToken[];
  readonly finish?: "stop" | "length";
}

export interface ChoiceAnswer {
  /** Takes a token, or the end that the engine reports, or both. */
  take(event: Pick<ChoiceEvent, "token" | "logprob"> & { readonly finish?: "stop" | "length" }): AnswerPiece;
}

/** @param stop strings that end the answer and are not part of it. */
export function createChoiceAnswer(index: number, vocabulary: Vocabulary, stop: readonly string[]): ChoiceAnswer {
  const output = createOutputText({ vocabulary, stop });
  const unreported: (ReportedToken | undefined)[] = [];

  function report(count: number): ReportedToken[] {
    return unreported.splice(0, count).filter((token) => token !== undefined);
  }

  return {
    take({ token, logprob, finish }) {
      let text = "";
      let tokens: readonly ReportedToken[] = [];
      if (token !== undefined && !vocabulary.isEndOfGeneration(token)) {
        unreported.push(logprob === undefined ? undefined : { token, logprob });
        const chunk = output.push(token);
        text = chunk.text;
        tokens = report(chunk.tokens);
        if (chunk.stopped) return { index, text, tokens, finish: "stop" };
      }
      if (finish === undefined) return { index, text, tokens };
      const rest = output.finish();
      return { index, text: text + rest.text, tokens: [...tokens, ...report(rest.tokens)], finish: rest.stopped ? "stop" : finish };
    },
  };
}
