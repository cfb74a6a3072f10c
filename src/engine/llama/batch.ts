/** The token batch that llama_decode reads: one native block, filled through typed arrays without copies. */
import koffi from "koffi";
import type { Batch } from "./structs.js";

export interface BatchBuffer {
  readonly capacityTokens: number;
  /** The struct to pass; its count follows what was added. */
  readonly native: Batch;
  /** Tokens in it. */
  readonly size: number;
  /** Tokens in it whose logits are wanted. */
  readonly outputs: number;
  clear(): void;
  /** Adds tokens of one sequence from position `start` on; with `wantsLogits`, those of the last one. Returns the last one's index. */
  add(tokens: Int32Array, sequence: number, start: number, wantsLogits: boolean): number;
  free(): void;
}

/**
 * Allocates a batch for `capacityTokens` tokens, each in one sequence.
 *
 *     | seq_id pointers | token | pos | n_seq_id | seq ids | logits |
 *
 * The pointers and the counts never change: pointer i leads to seq id i, and every count is 1.
 */
export function createBatch(capacityTokens: number): BatchBuffer {
  const pointerBytes = koffi.sizeof(koffi.pointer(koffi.types.void));
  const arrayBytes = capacityTokens * Int32Array.BYTES_PER_ELEMENT;
  const bytes = capacityTokens * pointerBytes + 4 * arrayBytes + capacityTokens;
  const base = koffi.alloc(koffi.types.uint8_t, bytes) as bigint;
  const memory = koffi.view(base, bytes);

  const arraysAt = capacityTokens * pointerBytes;
  const array = (index: number) => new Int32Array(memory, arraysAt + index * arrayBytes, capacityTokens);
  const address = (index: number) => base + BigInt(arraysAt + index * arrayBytes);
  const [tokens, positions, counts, sequences] = [array(0), array(1), array(2), array(3)];
  const outputs = new Int8Array(memory, arraysAt + 4 * arrayBytes, capacityTokens);
  counts.fill(1);
  fillPointers(memory, pointerBytes, address(3), capacityTokens);

  const native: Batch = { n_tokens: 0, token: address(0), embd: null, pos: address(1), n_seq_id: address(2), seq_id: base, logits: address(4) };
  let outputCount = 0;
  return {
    capacityTokens,
    native,
    get size() {
      return native.n_tokens;
    },
    get outputs() {
      return outputCount;
    },
    clear() {
      native.n_tokens = 0;
      outputCount = 0;
    },
    add(added, sequence, start, wantsLogits) {
      const from = native.n_tokens;
      const to = from + added.length;
      tokens.set(added, from); // throws a RangeError rather than write beyond the block
      for (let index = from; index < to; index++) positions[index] = start + index - from;
      sequences.fill(sequence, from, to);
      outputs.fill(0, from, to);
      if (wantsLogits) {
        outputs[to - 1] = 1;
        outputCount++;
      }
      native.n_tokens = to;
      return to - 1;
    },
    free: () => koffi.free(base),
  };
}

function fillPointers(memory: ArrayBuffer, pointerBytes: number, first: bigint, count: number): void {
  const pointers = pointerBytes === 8 ? new BigUint64Array(memory, 0, count) : new Uint32Array(memory, 0, count);
  for (let index = 0; index < count; index++) {
    const target = first + BigInt(index * Int32Array.BYTES_PER_ELEMENT);
    if (pointers instanceof BigUint64Array) pointers[index] = target;
    else pointers[index] = Number(target);
  }
}
