/** Turns a stream of tokens into text that never ends inside a UTF-8 character. */
import type { Vocabulary } from "./vocabulary.js";

export interface Detokenizer {
  /** The text that this token completes; empty when it only begins a character, and for control and end-of-generation tokens. */
  push(token: number): string;
  /** What is left at the end: an unfinished character becomes U+FFFD. */
  flush(): string;
  /** Bytes that wait for the rest of their character, at most 3. */
  readonly pendingBytes: number;
}

export interface DetokenizerOptions {
  /**
   * Drops the space that the tokenizer itself puts before a text, if the vocabulary has one. Right for a text that starts with its first token;
   * wrong for a generated answer, which continues a prompt: there llama.cpp keeps the space, and so do we.
   */
  readonly startsText?: boolean;
}

const none = new Uint8Array(0);
// Without ignoreBOM a leading U+FEFF would be swallowed.
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** A detokenizer for one text. All pushed text together is what a TextDecoder makes of all tokens' bytes together. */
export function createDetokenizer(vocabulary: Vocabulary, { startsText = false }: DetokenizerOptions = {}): Detokenizer {
  let pending = none;
  let dropsSpace = startsText && vocabulary.addSpacePrefix;

  function bytesOf(token: number): Uint8Array {
    const piece = vocabulary.isEndOfGeneration(token) ? none : vocabulary.piece(token);
    const isSpaced = dropsSpace && piece[0] === 0x20;
    dropsSpace = false; // llama.cpp looks at the first token only
    return isSpaced ? piece.subarray(1) : piece;
  }

  return {
    push(token) {
      const bytes = joined(pending, bytesOf(token));
      const end = bytes.length - unfinishedBytes(bytes);
      pending = bytes.slice(end);
      return utf8.decode(bytes.subarray(0, end));
    },
    flush() {
      const text = utf8.decode(pending);
      pending = none;
      return text;
    },
    get pendingBytes() {
      return pending.length;
    },
  };
}

/** The whole text of some tokens, as llama.cpp detokenizes a text that starts with the first of them. */
export function detokenize(vocabulary: Vocabulary, tokens: readonly number[]): string {
  const detokenizer = createDetokenizer(vocabulary, { startsText: true });
  return tokens.map((token) => detokenizer.push(token)).join("") + detokenizer.flush();
}

function joined(head: Uint8Array, tail: Uint8Array): Uint8Array {
  if (head.length === 0) return tail;
  const bytes = new Uint8Array(head.length + tail.length);
  bytes.set(head);
  bytes.set(tail, head.length);
  return bytes;
}

/** Length, 0 to 3, of the character at the end that more bytes may still complete. A sequence that is already invalid is not waited for. */
export function unfinishedBytes(bytes: Uint8Array): number {
  for (let length = 1; length <= Math.min(3, bytes.length); length += 1) {
    const first = bytes[bytes.length - length] ?? 0;
    if (isContinuation(first)) continue;
    if (characterBytes(first) <= length) return 0;
    const second = length === 1 ? undefined : bytes[bytes.length - length + 1];
    return second === undefined || isSecondByte(first, second) ? length : 0;
  }
  return 0;
}

function isContinuation(byte: number): boolean {
  return (byte & 0xc0) === 0x80;
}

/** Bytes of the character that begins with this byte; 1 also for a byte that begins none. */
function characterBytes(first: number): number {
  if (first < 0xc2 || first > 0xf4) return 1;
  if (first < 0xe0) return 2;
  return first < 0xf0 ? 3 : 4;
}

/** Whether a continuation byte may follow: overlong forms, surrogates and values past U+10FFFF are told by the second byte (Unicode, table 3-7). */
function isSecondByte(first: number, second: number): boolean {
  if (first === 0xe0) return second >= 0xa0;
  if (first === 0xed) return second < 0xa0;
  if (first === 0xf0) return second >= 0x90;
  return first !== 0xf4 || second < 0x90;
}
