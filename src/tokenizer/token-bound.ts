/** How many tokens a text has at least, told from its bytes in a few milliseconds where tokenizing would take seconds. */
import type { Vocabulary } from "./vocabulary.js";

/**
 * Makes the bound for a vocabulary: a number of tokens that no text of these bytes can have fewer of.
 *
 * A byte can only be part of tokens whose bytes include it. If the longest of those has L bytes, each such byte is at least the L-th part of a token;
 * what all bytes of a text add up to is a lower bound. It needs tokens that stand for exactly the bytes of the text:
 * - Only byte-level BPE and SentencePiece's BPE are like that; other kinds normalise the text, which may shorten it, and there the bound is 0.
 * - White space counts nothing where the model has tokens that swallow what stands beside them.
 * - A byte that is no token by itself counts nothing: a tokenizer may leave it out.
 */
export function createTokenBound(vocabulary: Vocabulary): (text: string) => number {
  if (vocabulary.type !== "bpe" && vocabulary.type !== "spm") return () => 0;
  const share = byteShares(vocabulary);
  return (text) => {
    const counts = new Uint32Array(256);
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length; at += 1) counts[bytes[at] as number] = (counts[bytes[at] as number] as number) + 1;
    // The sum is a little off after 256 roundings: what is whole but for that must not be rounded up to one more.
    return Math.max(0, Math.ceil(counts.reduce((sum, count, byte) => sum + count * (share[byte] as number), 0) - 1e-3));
  };
}

/** The part of a token that each byte is at least. */
function byteShares(vocabulary: Vocabulary): Float64Array {
  const longest = new Uint16Array(256);
  const isToken = new Uint8Array(256);
  for (let id = 0; id < vocabulary.size; id += 1) {
    const piece = vocabulary.piece(id);
    if (piece.length === 1) isToken[piece[0] as number] = 1;
    for (const byte of piece) if (piece.length > (longest[byte] as number)) longest[byte] = piece.length;
  }
  const swallowsSpace = vocabulary.special.some(({ lstrip, rstrip }) => lstrip || rstrip);
  return Float64Array.from(longest, (length, byte) => (isToken[byte] === 1 && !(swallowsSpace && isSpace(byte)) ? 1 / length : 0));
}

function isSpace(byte: number): boolean {
  return byte === 0x20 || (byte >= 0x09 && byte <= 0x0d);
}
