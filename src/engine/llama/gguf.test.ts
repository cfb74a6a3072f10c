import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { readGguf } from "./gguf.js";
import { ggufFacts } from "./gguf-facts.js";

const model = join(import.meta.dirname, "../../../models/pagoda-tiny/pagoda-tiny.gguf");
const folder = mkdtempSync(join(tmpdir(), "pagoda-gguf-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

function headOf(version: number): Buffer {
  const head = Buffer.alloc(64);
  head.write("GGUF", "latin1");
  head.writeUInt32LE(version, 4);
  return head;
}

function codeOf(path: string): unknown {
  try {
    readGguf(path);
  } catch (error) {
    return (error as { code?: string }).code;
  }
  return undefined;
}

describe("the head of a GGUF file", () => {
  test("tells the architecture, the metadata and what planning needs", () => {
    const summary = readGguf(model);
    expect(summary.architecture).toBe("llama");
    expect(summary.metadata.get("llama.block_count")).toBe(6);
    expect(ggufFacts(summary, "f16")).toMatchObject({ trainedContextTokens: 2048, kvBytesPerToken: 1536, layers: 6, canTrim: true });
    expect(ggufFacts(summary, "q8_0").kvBytesPerToken).toBe(816);
  });

  test.each([
    ["no file at all", join(folder, "absent.gguf"), "model_file_unreadable"],
    ["a folder", folder, "model_file_unreadable"],
    ["an empty file", fileOf("empty.gguf", ""), "model_not_gguf"],
    ["three letters", fileOf("short.gguf", "GGU"), "model_truncated"],
    ["a text", fileOf("text.gguf", "This is no model, only a text that somebody named like one."), "model_not_gguf"],
    ["a Git LFS pointer", fileOf("lfs.gguf", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"), "model_not_gguf"],
    ["an unknown version", fileOf("version.gguf", headOf(99)), "model_unsupported"],
    ["a big-endian file", fileOf("endian.gguf", headOf(0x03000000)), "model_unsupported"],
  ])("%s is refused with its own code", (_, path, code) => {
    expect(codeOf(path)).toBe(code);
  });

  test("a file cut off anywhere before its last tensor is called incomplete", () => {
    const whole = readFileSync(model);
    for (const bytes of [5, 23, 100, 5_000, 20_000, 31_000, 1_000_000]) {
      expect(codeOf(fileOf("cut.gguf", whole.subarray(0, bytes))), `${bytes} bytes`).toBe("model_truncated");
    }
  });

  test("absurd counts end in a coded error, not in an endless read", () => {
    for (const count of [2n ** 40n, 2n ** 63n, 2n ** 64n - 1n]) {
      const head = headOf(3);
      head.writeBigUInt64LE(count, 8);
      head.writeBigUInt64LE(count, 16);
      expect(["model_truncated", "model_not_gguf"]).toContain(codeOf(fileOf("absurd.gguf", head)));
    }
  });
});
