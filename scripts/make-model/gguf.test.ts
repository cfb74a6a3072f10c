import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test as property } from "@fast-check/vitest";
import fc from "fast-check";
import { afterAll, describe, expect, test } from "vitest";
import {
  float32Entry,
  type GgufEntry,
  type GgufTensor,
  ggufAlignment,
  stringEntry,
  type TensorType,
  tensorBytes,
  tensorTypes,
  uint32Entry,
} from "./gguf-format.js";
import { readArrayLength, readGgufHeader, readString, readUint32 } from "./gguf-reader.js";
import { encodeHeader, writeGguf } from "./gguf-writer.js";
import { arrayEntry } from "./test-entries.js";

const folder = mkdtempSync(join(tmpdir(), "gguf-"));
afterAll(() => rmSync(folder, { recursive: true }));

const arbitraryEntry: fc.Arbitrary<GgufEntry> = fc.tuple(fc.string({ minLength: 1, unit: "binary" }), fc.nat(3)).chain(([key, kind]) => {
  if (kind === 0) return fc.string({ unit: "binary" }).map((value) => stringEntry(key, value));
  if (kind === 1) return fc.nat(2 ** 32 - 1).map((value) => uint32Entry(key, value));
  if (kind === 2) return fc.float({ noNaN: true }).map((value) => float32Entry(key, value));
  return fc.array(fc.string({ unit: "binary" })).map((values) => arrayEntry(key, "string", values));
});

const arbitraryTensor: fc.Arbitrary<Omit<GgufTensor, "name">> = fc
  .tuple(fc.constantFrom<TensorType>("f32", "f16", "q8_0"), fc.integer({ min: 1, max: 3 }), fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 3 }))
  .map(([type, blocks, rest]) => ({ type, dimensions: [blocks * tensorTypes[type].blockWeights, ...rest] }));

const arbitraryFile = fc.record({
  entries: fc.uniqueArray(arbitraryEntry, { selector: (entry) => entry.key, maxLength: 8 }),
  tensors: fc.array(arbitraryTensor, { maxLength: 5 }).map((tensors) => tensors.map((tensor, i) => ({ ...tensor, name: `tensor.${i}` }))),
});

/** Bytes that differ from tensor to tensor, in two chunks, so that a wrong order or a lost chunk shows. */
function dataOf(tensor: GgufTensor): Uint8Array[] {
  const bytes = Uint8Array.from({ length: tensorBytes(tensor) }, (_, i) => (i + tensor.name.length + Number(tensor.name.at(-1)) * 37) & 0xff);
  return [bytes.subarray(0, 1), bytes.subarray(1)];
}

describe("a GGUF file", () => {
  property.prop([arbitraryFile])("reads back as it was written, every value and every tensor in its place", ({ entries, tensors }) => {
    const path = join(folder, "round-trip.gguf");
    const size = writeGguf(path, entries, tensors, dataOf);
    const file = readFileSync(path);
    const header = readGgufHeader(file);
    expect(file.length).toBe(size);
    expect([...header.entries.keys()]).toEqual(entries.map((entry) => entry.key));
    for (const entry of entries) expect(Buffer.from(header.entries.get(entry.key)?.encoded ?? []).equals(entry.encoded)).toBe(true);
    expect(header.tensors.map(({ name, dimensions }) => ({ name, dimensions }))).toEqual(tensors.map(({ name, dimensions }) => ({ name, dimensions })));
    for (const [i, tensor] of tensors.entries()) {
      const record = header.tensors[i];
      expect(record?.typeTag).toBe(tensorTypes[tensor.type].tag);
      const start = record?.offset ?? -1;
      expect(start % ggufAlignment).toBe(0);
      expect(file.subarray(start, start + tensorBytes(tensor)).equals(Buffer.concat(dataOf(tensor)))).toBe(true);
    }
  });

  test("gives the values of its entries by type", () => {
    const header = readGgufHeader(
      encodeHeader([stringEntry("name", "Grüße"), uint32Entry("count", 4_000_000_000), arrayEntry("tokens", "string", ["a", "", "ö"])], []),
    );
    expect(readString(header, "name")).toBe("Grüße");
    expect(readUint32(header, "count")).toBe(4_000_000_000);
    expect(readArrayLength(header, "tokens")).toBe(3);
    expect(readString(header, "count")).toBeUndefined();
    expect(readUint32(header, "missing")).toBeUndefined();
  });

  test("that ends inside its header is refused", () => {
    const whole = encodeHeader([stringEntry("general.architecture", "llama"), arrayEntry("tokens", "string", ["a", "b"])], []);
    const used = whole.length - ggufAlignment;
    for (let length = 0; length < used; length++) expect(() => readGgufHeader(whole.subarray(0, length))).toThrow();
    expect(() => readGgufHeader(whole)).not.toThrow();
  });

  test("whose tensor got too few bytes does not appear under its name", () => {
    const path = join(folder, "short.gguf");
    const tensor: GgufTensor = { name: "t", type: "f32", dimensions: [8] };
    expect(() => writeGguf(path, [], [tensor], () => [new Uint8Array(31)])).toThrow("takes 32 bytes");
    expect(readdirSync(folder).filter((name) => name.startsWith("short"))).toEqual([]);
  });

  test("refuses rows that are no whole number of blocks", () => {
    expect(() => tensorBytes({ name: "t", type: "q8_0", dimensions: [48, 2] })).toThrow("no whole number of q8_0 blocks");
  });
});
