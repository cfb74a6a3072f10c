import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { architecture, entry, gguf, string, tensor, u16, u32 } from "./fixtures/gguf-bytes.js";
import { readGgufHeader } from "./gguf-header.js";
import { readGgufModel } from "./gguf-model.js";
import { resolveSource } from "./source.js";

const folder = mkdtempSync(join(tmpdir(), "pagoda-parts-"));
afterAll(() => rmSync(folder, { recursive: true }));

const floats = 0;
const place = (index: number, count: number, tensors: number) => [
  entry("split.no", 2, u16(index)),
  entry("split.count", 2, u16(count)),
  entry("split.tensors.count", 5, u32(tensors)),
];

/** Writes the parts of a model with 4 bytes of data in the first tensor, 8 in the second and so on, one tensor in each part; `change` replaces parts. */
function writeParts(name: string, count: number, change: (index: number) => Buffer | undefined = () => undefined): string[] {
  return Array.from({ length: count }, (_, index) => {
    const path = join(folder, `${name}-${String(index + 1).padStart(5, "0")}-of-${String(count).padStart(5, "0")}.gguf`);
    writeFileSync(path, change(index) ?? part(index, count, count));
    return path;
  });
}

function part(index: number, count: number, tensors: number): Buffer {
  const entries = [...(index === 0 ? [architecture] : []), ...place(index, count, tensors)];
  return Buffer.concat([gguf(1, entries, tensor([index + 1], floats, 0)), Buffer.alloc(32 + 4 * count)]);
}

describe("a model", () => {
  test("in one file is that file's header and its tensors' bytes", () => {
    const { path } = resolveSource("builtin:pagoda-tiny");
    const header = readGgufHeader(path);
    expect(readGgufModel(path)).toEqual({ ...header, weightBytes: header.tensorBytes });
    expect(header.tensorBytes).toBe(statSync(path).size - header.headerBytes);
  });

  test("in several files is the first one's header and the bytes of all, whichever part is named", () => {
    const paths = writeParts("sound", 3);
    for (const path of paths) expect(readGgufModel(path)).toMatchObject({ path: paths[0], architecture: "llama", weightBytes: 4 + 8 + 12 });
  });

  test("that was merged again is a model in one file", () => {
    const path = join(folder, "merged.gguf");
    writeFileSync(path, gguf(0, [architecture, ...place(0, 0, 0)]));
    expect(readGgufModel(path).weightBytes).toBe(0);
  });

  test("whose files do not belong together is refused with the file at fault", () => {
    const swapped = writeParts("swapped", 3, (index) => part([0, 2, 1][index] ?? 0, 3, 3));
    const mixed = writeParts("mixed", 2, (index) => (index === 1 ? part(1, 3, 2) : undefined));
    const counted = writeParts("counted", 2, (index) => (index === 0 ? part(0, 2, 7) : undefined));
    const foreign = writeParts("foreign", 2, (index) => (index === 1 ? gguf(0, []) : undefined));
    const renamed = join(folder, "renamed.gguf");
    writeFileSync(renamed, part(0, 2, 2));
    const cases: [string | undefined, string, RegExp][] = [
      [swapped[0], "invalid_gguf", /swapped-00002-of-00003.*part 2 of 3.*part 3 of 3/],
      [mixed[0], "invalid_gguf", /mixed-00002-of-00002.*part 2 of 2.*part 2 of 3/],
      [counted[0], "invalid_gguf", /counted-00001.*7 tensors.*have 2/],
      [foreign[0], "invalid_gguf", /foreign-00002/],
      [renamed, "invalid_gguf", /one file.*part 1 of 2/],
    ];
    for (const [path = "", code, message] of cases)
      expect(() => readGgufModel(path)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });

  test("with a broken part is refused with that part's error", () => {
    const paths = (change: (index: number) => Buffer | undefined) => writeParts("broken", 2, change);
    const codes = [Buffer.alloc(0), Buffer.from("text"), part(1, 2, 2).subarray(0, 60), part(1, 2, 2).subarray(0, -40)].map((bytes) => {
      const [first = ""] = paths((index) => (index === 1 ? bytes : undefined));
      try {
        return readGgufModel(first).path;
      } catch (error) {
        expect((error as Error).message).toContain("broken-00002-of-00002");
        return (error as { code?: string }).code;
      }
    });
    expect(codes).toEqual(["not_gguf", "not_gguf", "truncated_gguf", "truncated_gguf"]);
  });

  test.each(["adapter", "mmproj"])("is not what a file of the type %s holds", (kind) => {
    const path = join(folder, `${kind}.gguf`);
    writeFileSync(path, gguf(0, [architecture, entry("general.type", 8, string(kind))]));
    expect(() => readGgufModel(path)).toThrow(expect.objectContaining({ code: "model_unsupported" }));
  });
});
