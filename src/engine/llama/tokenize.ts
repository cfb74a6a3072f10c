/** Turns text into token ids with the model's own vocabulary, long text off the event loop. */
import { tokenizeFailed } from "../../errors.js";
import type { TextSegment } from "../protocol.js";
import { constants } from "./constants.js";
import { callAsync } from "./functions.js";
import { cutLongRuns } from "./long-runs.js";
import type { LlamaModel } from "./model.js";

/** Bytes up to which a text is tokenized at once: well under a millisecond, less than a thread's round trip is worth. */
const immediateBytes = 2048;

/**
 * Token ids of each segment, in order. With `addSpecial`, the first begins with BOS and the last ends with EOS where the model wants them.
 * Lone surrogates become U+FFFD. Throws `tokenizeFailed` when a text has more tokens than 32 bits can count.
 */
export async function tokenize(model: LlamaModel, segments: readonly TextSegment[], options: { readonly addSpecial: boolean }): Promise<number[][]> {
  const results: number[][] = [];
  for (const segment of segments) results.push(await tokenizeSegment(model, segment));
  return options.addSpecial ? addBounds(model, results) : results;
}

async function tokenizeSegment(model: LlamaModel, { text, parseSpecial }: TextSegment): Promise<number[]> {
  // Only byte-level BPE splits text with patterns; SentencePiece would put a space before each piece.
  const isBpe = model.llama.native.llama_vocab_type(model.vocabulary) === constants.LLAMA_VOCAB_TYPE_BPE;
  const pieces = isBpe ? cutLongRuns(text) : [text];
  const tokens: number[] = [];
  for (const piece of pieces) for (const token of await tokenizePiece(model, piece, parseSpecial)) tokens.push(token);
  return tokens;
}

async function tokenizePiece(model: LlamaModel, piece: string, parseSpecial: boolean): Promise<Int32Array> {
  const { native } = model.llama;
  const text = Buffer.from(piece, "utf8");
  // Seldom more tokens than bytes; when there are, the library says how many.
  let tokens = new Int32Array(text.length + 8);
  for (;;) {
    const parameters = [model.vocabulary, text, text.length, tokens, tokens.length, false, parseSpecial] as const;
    const count = text.length <= immediateBytes ? native.llama_tokenize(...parameters) : await callAsync(native.llama_tokenize, ...parameters);
    if (count >= 0) return tokens.subarray(0, count);
    if (count === -(2 ** 31)) throw tokenizeFailed({ reason: `it has too many tokens (${text.length} bytes).` });
    tokens = new Int32Array(-count);
  }
}

/** The library adds these itself when told to, but to every segment, and it aborts when a model wants a BOS that it does not have. */
function addBounds(model: LlamaModel, results: number[][]): number[][] {
  const { native } = model.llama;
  const bos = native.llama_vocab_get_add_bos(model.vocabulary) ? native.llama_vocab_bos(model.vocabulary) : -1;
  const eos = native.llama_vocab_get_add_eos(model.vocabulary) ? native.llama_vocab_eos(model.vocabulary) : -1;
  if (bos >= 0) results[0]?.unshift(bos);
  if (eos >= 0) results.at(-1)?.push(eos);
  return results;
}
