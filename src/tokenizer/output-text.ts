/** The text of one answer as it streams: tokens in, text out, cut at the first stop string. */
import { createDetokenizer } from "./detokenizer.js";
import { createStopMatcher, type StopMatch } from "./stop-matcher.js";
import type { Vocabulary } from "./vocabulary.js";

export interface OutputChunk {
  /** Text to send now. */
  readonly text: string;
  /** A stop string was found: the answer is over and nothing more comes out. */
  readonly stopped: boolean;
  /**
   * How many further tokens, in the order they were pushed, are to be reported with this text (log probabilities).
   * A token waits until all its text is out; one whose text lies wholly in or after the stop string is never reported.
   */
  readonly tokens: number;
}

export interface OutputText {
  /** Takes the next token. */
  push(token: number): OutputChunk;
  /** The answer is over: what was held back comes out. */
  finish(): OutputChunk;
}

export interface OutputTextOptions {
  readonly vocabulary: Vocabulary;
  readonly stop?: readonly string[];
}

/** Where a token's text lies in the whole text, in UTF-16 units; `end` is unknown while its last character is unfinished. */
interface TokenSpan {
  readonly start: number;
  end: number | undefined;
}

/** Text of one answer, which continues a prompt. */
export function createOutputText({ vocabulary, stop = [] }: OutputTextOptions): OutputText {
  const detokenizer = createDetokenizer(vocabulary);
  const matcher = createStopMatcher(stop);
  const waiting: TokenSpan[] = [];
  let decodedLength = 0;
  let sentLength = 0;
  let isOver = false;

  function decoded(text: string): string {
    // New text completes every character that was open before it.
    if (text !== "") for (const span of waiting) span.end ??= decodedLength + text.length;
    decodedLength += text.length;
    return text;
  }

  function send({ text, stopped }: StopMatch): OutputChunk {
    sentLength += text.length;
    isOver ||= stopped;
    const isReported = ({ start, end }: TokenSpan) => (stopped ? start < sentLength : end !== undefined && end <= sentLength);
    const held = waiting.findIndex((span) => !isReported(span));
    const tokens = waiting.splice(0, held < 0 ? waiting.length : held).length;
    if (isOver) waiting.length = 0;
    return { text, stopped, tokens };
  }

  return {
    push(token) {
      if (isOver) return { text: "", stopped: true, tokens: 0 };
      const start = decodedLength;
      const text = decoded(detokenizer.push(token));
      waiting.push({ start, end: detokenizer.pendingBytes === 0 ? decodedLength : undefined });
      return send(matcher.push(text));
    },
    finish() {
      if (isOver) return { text: "", stopped: true, tokens: 0 };
      const { text: last } = matcher.push(decoded(detokenizer.flush()));
      const { text, stopped } = matcher.finish();
      for (const span of waiting) span.end ??= decodedLength;
      return send({ text: last + text, stopped });
    },
  };
}
