import { mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, isAbsolute, join, relative } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { builtinModels, resolveSource } from "./source.js";

const folder = mkdtempSync(join(tmpdir(), "pagoda-source-"));
afterAll(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

describe("a model source", () => {
  test("builtin:pagoda-tiny comes with the program", () => {
    expect(builtinModels()).toContain("pagoda-tiny");
    const source = resolveSource("builtin:pagoda-tiny");
    expect(source).toMatchObject({ name: "pagoda-tiny", sizeBytes: statSync(source.path).size, parts: [source.path] });
    expect(basename(source.tokenizerJsonPath ?? "")).toBe("tokenizer.json");
  });

  test("a path, relative or absolute, is named after its file", () => {
    const path = file("Some-Model.Q4_K_M.gguf", "12345");
    for (const source of [path, relative(process.cwd(), path)]) {
      const resolved = resolveSource(source);
      expect(resolved).toEqual({ name: "Some-Model.Q4_K_M", path, parts: [path], sizeBytes: 5, createdUnixSeconds: Math.floor(statSync(path).mtimeMs / 1000) });
      expect(isAbsolute(resolved.path)).toBe(true);
    }
  });

  test("any part of a split model stands for all of them", () => {
    const parts = [1, 2, 3].map((index) => file(`big-0000${index}-of-00003.gguf`, "x".repeat(index)));
    for (const part of parts) expect(resolveSource(part)).toMatchObject({ name: "big", path: parts[0], parts, sizeBytes: 6 });
  });

  test("a missing part is named", () => {
    file("hole-00001-of-00002.gguf", "x");
    expect(() => resolveSource(join(folder, "hole-00001-of-00002.gguf"))).toThrow(/hole-00002-of-00002\.gguf.*no such file/);
  });

  test("what cannot be served is refused and says what can", () => {
    mkdirSync(join(folder, "inner"));
    const refusals: [string, string, RegExp][] = [
      ["builtin:other", "model_source_unknown", /builtin:pagoda-tiny, a path to a \.gguf file/],
      ["ftp://host/model.gguf", "model_source_unknown", /builtin:pagoda-tiny/],
      ["", "model_source_unknown", /a path/],
      ["hf:org/repo/file.gguf", "model_source_not_served", /'hf:' sources yet/],
      ["mlflow:models:/name@alias", "model_source_not_served", /'mlflow:' sources yet/],
      [join(folder, "absent.gguf"), "model_file_missing", /absent\.gguf.*no such file/],
      [join(folder, "inner"), "model_file_missing", /not a file/],
    ];
    for (const [source, code, message] of refusals)
      expect(() => resolveSource(source)).toThrow(expect.objectContaining({ code, message: expect.stringMatching(message) }));
  });
});
