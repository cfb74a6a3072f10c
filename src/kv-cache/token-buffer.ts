/** A growing list of token ids in one typed array: what a sequence knows, or what a slot holds. */

export interface TokenBuffer {
  readonly length: number;
  push(token: number): void;
  append(tokens: Int32Array): void;
  /** Forgets everything from position `length` on. */
  truncate(length: number): void;
  at(position: number): number;
  /** The tokens [start, end), as a view that is valid until the next change. */
  view(start: number, end: number): Int32Array;
  copy(start: number, end: number): Int32Array;
}

export function createTokenBuffer(initial?: Int32Array): TokenBuffer {
  let data = new Int32Array(Math.max(64, (initial?.length ?? 0) + 64));
  let length = 0;

  function ensure(capacity: number): void {
    if (capacity <= data.length) return;
    const grown = new Int32Array(Math.max(capacity, data.length * 2));
    grown.set(data.subarray(0, length));
    data = grown;
  }

  const buffer: TokenBuffer = {
    get length() {
      return length;
    },
    push(token) {
      ensure(length + 1);
      data[length++] = token;
    },
    append(tokens) {
      ensure(length + tokens.length);
      if (tokens.length === 1) data[length] = tokens[0] as number;
      else data.set(tokens, length);
      length += tokens.length;
    },
    truncate(newLength) {
      length = Math.min(length, newLength);
    },
    at: (position) => data[position] as number,
    view: (start, end) => data.subarray(start, Math.min(end, length)),
    // A decode row is one token, and making a view of it first costs as much as all the rest of its row.
    copy: (start, end) => (end - start === 1 ? Int32Array.of(data[start] as number) : data.slice(start, Math.min(end, length))),
  };
  if (initial !== undefined) buffer.append(initial);
  return buffer;
}

/** How many tokens two lists have in common from `from` on, at most up to position `limit`. */
export function commonLength(a: TokenBuffer, b: TokenBuffer, from: number, limit: number): number {
  const end = Math.min(a.length, b.length, limit);
  let position = from;
  while (position < end && a.at(position) === b.at(position)) position++;
  return position;
}
