import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { modelHash, versionFingerprint } from "./fingerprint.js";
import { readGgufHeader } from "./gguf-header.js";
import { resolveSource } from "./source.js";

const folder = mkdtempSync(join(tmpdir(), "pagoda-fingerprint-"));
afterAll(() => rmSync(folder, { recursive: true }));
const { path } = resolveSource("builtin:pagoda-tiny");
const bytes = readFileSync(path);

function hashWithChangedByte(offset: number): string {
  const changed = Buffer.from(bytes);
  changed[offset] = (changed[offset] ?? 0) ^ 1;
  const copy = join(folder, "changed.gguf");
  writeFileSync(copy, changed);
  return modelHash([copy]);
}

describe("a fingerprint", () => {
  test("of a model is that of its content, wherever it lies", () => {
    const copy = join(folder, "copy.gguf");
    writeFileSync(copy, bytes);
    expect(modelHash([copy])).toBe(modelHash([path]));
    expect(modelHash([path])).toMatch(/^[0-9a-f]{64}$/);
  });

  test("of a model changes with its metadata and with both ends of its data", () => {
    const { headerBytes, metadata } = readGgufHeader(path);
    const nameAt = bytes.indexOf(String(metadata.get("general.name")));
    const hashes = [modelHash([path]), ...[nameAt, headerBytes, bytes.length - 1].map(hashWithChangedByte)];
    expect(new Set(hashes).size).toBe(4);
  });

  test("of a version shows which part moved", () => {
    const parts = { model: "m", tokenizer: "t", template: "c", engine: "v0.4.0" };
    const fields = (changes: Partial<typeof parts>) =>
      versionFingerprint({ ...parts, ...changes })
        .short.slice(1)
        .split("-");
    expect(versionFingerprint(parts)).toEqual({ ...parts, short: expect.stringMatching(/^b[0-9a-f]{6}(-[0-9a-f]{6}){3}$/) });
    const same = fields({});
    for (const [index, name] of (["model", "tokenizer", "template", "engine"] as const).entries()) {
      const moved = fields({ [name]: "other" }).map((field, at) => field !== same[at]);
      expect(moved).toEqual([0, 1, 2, 3].map((at) => at === index));
    }
  });
});
