/** GPT-2's byte alphabet: the printable characters that stand for the 256 bytes in byte-level vocabularies. */

/** The bytes that a byte-level spelling stands for; undefined when a character of it stands for none. */
export function byteLevelBytes(spelling: string): Uint8Array | undefined {
  const bytes = [...spelling].map((character) => byteOfCharacter.get(character));
  return bytes.includes(undefined) ? undefined : Uint8Array.from(bytes as number[]);
}

// Bytes that print as themselves in Latin-1 keep their character, all others get the next one from U+0100 on.
const printable = [range(0x21, 0x7e), range(0xa1, 0xac), range(0xae, 0xff)].flat();
const unprintable = range(0, 255).filter((byte) => !printable.includes(byte));
const byteOfCharacter = new Map<string, number>([
  ...printable.map((byte): [string, number] => [String.fromCodePoint(byte), byte]),
  ...unprintable.map((byte, index): [string, number] => [String.fromCodePoint(0x100 + index), byte]),
]);

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}
