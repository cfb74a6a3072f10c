/** A model's tokens as bytes, without the model. */

export interface SpecialToken {
  readonly id: number;
  readonly text: string;
  /** White space on that side of the spelling belongs to the token. */
  readonly lstrip: boolean;
  readonly rstrip: boolean;
}

export interface NamedToken {
  readonly id: number;
  readonly text: string;
}

/** The vocabulary as an engine sends it. */
export interface VocabularyInfo {
  readonly type: "none" | "spm" | "bpe" | "wpm" | "ugm" | "rwkv" | "plamo2" | "other";
  /** All tokens' bytes one after another, in base64; control tokens have no bytes. */
  readonly pieces: string;
  /** Length of each token's bytes, in the order of ids, as base64 of little-endian uint16. */
  readonly pieceLengths: string;
  /** Control tokens, which only a template may produce. */
  readonly special: readonly SpecialToken[];
  readonly endOfGeneration: readonly number[];
  readonly bos: NamedToken | undefined;
  readonly eos: NamedToken | undefined;
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly addSpacePrefix: boolean;
}

export interface Vocabulary {
  readonly type: VocabularyInfo["type"];
  /** Number of tokens; ids go from 0 to one less. */
  readonly size: number;
  readonly special: readonly SpecialToken[];
  readonly bos: NamedToken | undefined;
  readonly eos: NamedToken | undefined;
  /** Prompts begin with `bos`. */
  readonly addBos: boolean;
  readonly addEos: boolean;
  readonly addSpacePrefix: boolean;
  /** A token's bytes, not to be changed; none for a control token and for an id outside the vocabulary. */
  piece(id: number): Uint8Array;
  isEndOfGeneration(id: number): boolean;
  isSpecial(id: number): boolean;
}

/** Decodes an engine's vocabulary: one block of bytes and one of offsets, whatever the number of tokens. Throws on a table that does not add up. */
export function createVocabulary(info: VocabularyInfo): Vocabulary {
  const bytes = fromBase64(info.pieces);
  const offsets = pieceOffsets(fromBase64(info.pieceLengths));
  const size = offsets.length - 1;
  if (offsets[size] !== bytes.length) throw new Error(`The vocabulary's pieces have ${bytes.length} bytes, their lengths add up to ${offsets[size]}.`);
  const endOfGeneration = new Set(info.endOfGeneration);
  const specialIds = new Set(info.special.map(({ id }) => id));
  const { type, special, bos, eos, addBos, addEos, addSpacePrefix } = info;
  return {
    type,
    size,
    special,
    bos,
    eos,
    addBos,
    addEos,
    addSpacePrefix,
    piece: (id) => bytes.subarray(offsets[id] ?? 0, offsets[id + 1] ?? 0),
    isEndOfGeneration: (id) => endOfGeneration.has(id),
    isSpecial: (id) => specialIds.has(id),
  };
}

function fromBase64(text: string): Uint8Array {
  // A copy of its own: a Buffer may be a view of Node's shared pool.
  return Uint8Array.from(Buffer.from(text, "base64"));
}

function pieceOffsets(lengths: Uint8Array): Uint32Array {
  const view = new DataView(lengths.buffer);
  const offsets = new Uint32Array(lengths.length / 2 + 1);
  for (let id = 0; id + 1 < offsets.length; id += 1) offsets[id + 1] = (offsets[id] ?? 0) + view.getUint16(id * 2, true);
  return offsets;
}
