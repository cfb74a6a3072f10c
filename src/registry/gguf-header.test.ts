import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { fc, test } from "@fast-check/vitest";
import { afterAll, describe, expect } from "vitest";
import { PagodaError } from "../errors.js";
import { architecture, entry, gguf, string, tensor, u32, u64 } from "./fixtures/gguf-bytes.js";
import { kvBytesPerToken, readGgufHeader } from "./gguf-header.js";

const demoPath = fileURLToPath(new URL("../../models/pagoda-tiny/pagoda-tiny.gguf", import.meta.url));
const demoBytes = readFileSync(demoPath);
const folder = mkdtempSync(join(tmpdir(), "pagoda-gguf-"));
afterAll(() => rmSync(folder, { recursive: true }));

function fileOf(bytes: Uint8Array): string {
  const path = join(folder, "model.gguf");
  writeFileSync(path, bytes);
  return path;
}

/** Reads bytes as a GGUF file and gives the code of the error. */
function errorOf(bytes: Uint8Array): PagodaError {
  try {
    readGgufHeader(fileOf(bytes));
  } catch (thrown) {
    if (thrown instanceof PagodaError) return thrown;
    throw thrown;
  }
  throw new Error("The file was accepted.");
}

describe("a GGUF header", () => {
  test("of the built-in model has its figures", () => {
    const header = readGgufHeader(demoPath);
    expect(header).toMatchObject({
      architecture: "llama",
      kind: "model",
      name: "Pagoda Tiny",
      fileType: "Q8_0",
      blockCount: 6,
      trainedContextTokens: 2048,
      embeddingLength: 192,
      headCounts: [3, 3, 3, 3, 3, 3],
      kvHeadCounts: [1, 1, 1, 1, 1, 1],
      keyLength: 64,
      valueLength: 64,
      vocabularySize: 1024,
      slidingWindowTokens: 0,
      memory: "attention",
      parameterCount: 2_558_400,
      split: undefined,
    });
    expect(header.headerBytes + header.tensorBytes).toBe(demoBytes.length);
    expect(header.chatTemplate).toContain("<|im_start|>");
    expect(kvBytesPerToken(header, 2)).toBe(6 * (64 + 64) * 2);
    expect(kvBytesPerToken(header, 34 / 32)).toBe((6 * (64 + 64) * 34) / 32);
  });

  test("skips long lists and keeps short ones, with a value for each block", () => {
    const heads = entry("llama.attention.head_count_kv", 9, Buffer.concat([u32(5), u64(2), u32(4), u32(0)]));
    const tokens = entry("tokenizer.ggml.tokens", 9, Buffer.concat([u32(8), u64(2000), ...Array.from({ length: 2000 }, () => string("ab"))]));
    const header = readGgufHeader(fileOf(gguf(0, [architecture, entry("llama.block_count", 4, u32(2)), heads, tokens])));
    expect(header.kvHeadCounts).toEqual([4, 0]);
    expect(header.metadata.get("tokenizer.ggml.tokens")).toEqual({ skippedItems: 2000 });
    expect(header.vocabularySize).toBe(2000);
  });

  test("tells a model with states from one with attention, also of an architecture that is not known", () => {
    const memoryOf = (name: string, ...entries: Buffer[]) =>
      readGgufHeader(fileOf(gguf(0, [entry("general.architecture", 8, string(name)), entry(`${name}.block_count`, 4, u32(2)), ...entries]))).memory;
    const states = entry("new.ssm.state_size", 4, u32(16));
    const heads = entry("new.attention.head_count_kv", 9, Buffer.concat([u32(5), u64(2), u32(4), u32(0)]));
    expect(memoryOf("new", heads)).toBe("attention");
    expect(memoryOf("new", states)).toBe("recurrent");
    expect(memoryOf("new", states, heads)).toBe("hybrid");
    expect(memoryOf("mamba2")).toBe("recurrent");
  });

  test("reads values of every type, across the edges of its window", () => {
    const padding = entry("padding", 8, string("x".repeat(256 * 1024 - 60)));
    const values = [
      entry("a", 0, Buffer.from([200])),
      entry("b", 1, Buffer.from([200])),
      entry("c", 2, Buffer.from([1, 2])),
      entry("d", 3, Buffer.from([255, 255])),
      entry("e", 5, u32(0xffffffff)),
      entry("f", 6, Buffer.from(Float32Array.of(1.5).buffer)),
      entry("g", 7, Buffer.from([1])),
      entry("h", 10, u64(2 ** 40)),
      entry("i", 11, u64(2n ** 64n - 1n)),
      entry("j", 12, Buffer.from(Float64Array.of(-0.1).buffer)),
    ];
    const { metadata } = readGgufHeader(fileOf(gguf(0, [architecture, padding, ...values])));
    expect([..."abcdefghij"].map((key) => metadata.get(key))).toEqual([200, -56, 513, -1, -1, 1.5, true, 2 ** 40, -1, -0.1]);
  });
});

describe("a file that cannot be loaded", () => {
  test.prop([fc.nat(demoBytes.length - 1)])("cut anywhere is truncated, or too short to be a GGUF file", (length) => {
    expect(errorOf(demoBytes.subarray(0, length)).code).toBe(length < 4 ? "not_gguf" : "truncated_gguf");
  });

  test.prop([fc.uint8Array({ maxLength: 200 })])("made of anything gives a coded error in one line", (bytes) => {
    for (const content of [bytes, Buffer.concat([Buffer.from("GGUF"), u32(3), bytes])]) expect(errorOf(content).message).not.toContain("\n");
  });

  test("is named in words", () => {
    expect(errorOf(new Uint8Array(0)).message).toContain("it is empty");
    expect(errorOf(Buffer.from("<!DOCTYPE html>")).message).toContain('"<!DO"');
    expect(errorOf(Buffer.from("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")).message).toContain("git lfs pull");
    for (const version of [0, 1, 99]) expect(errorOf(Buffer.concat([Buffer.from("GGUF"), u32(version)])).message).toContain(`version ${version} `);
    expect(errorOf(Buffer.concat([Buffer.from("GGUF"), u32(0x03000000)])).message).toContain("big-endian");
    expect(errorOf(gguf(0, [])).message).toContain("architecture");
    expect(() => readGgufHeader(join(folder, "absent.gguf"))).toThrow(expect.objectContaining({ code: "model_file_missing" }));
    expect(() => readGgufHeader(folder)).toThrow(expect.objectContaining({ code: "model_file_missing" }));
  });

  test("is described in one line without control characters, whatever its names are", () => {
    const name = "a\n\u001b[31m\u009b\u2028b";
    const files = [
      gguf(0, [entry(name, 77, u64(0))]),
      gguf(0, [entry(name, 9, Buffer.concat([u32(77), u64(1)]))]),
      gguf(1, [architecture], tensor([31], 8, 0, name)),
      gguf(0, [entry("general.architecture", 8, string(name))]),
      Buffer.from("\n\u009bx"),
    ];
    for (const bytes of files) expect(errorOf(bytes).message).toMatch(/^[^\p{Cc}\u2028]*$/u);
  });

  test("claims sizes that are not believed", () => {
    const claims = {
      tensors: gguf(2n ** 62n, []),
      entries: Buffer.concat([Buffer.from("GGUF"), u32(3), u64(0), u64(2n ** 63n)]),
      string: gguf(0, [entry("general.architecture", 8, u64(2n ** 60n))]),
      list: gguf(0, [entry("x", 9, Buffer.concat([u32(4), u64(2n ** 61n)]))]),
      "list of lists": gguf(0, [entry("x", 9, Buffer.concat([u32(9), u64(1)]))]),
      type: gguf(0, [entry("x", 77, u64(0))]),
      "double key": gguf(0, [architecture, architecture]),
      "tensor beyond the end": gguf(1, [architecture], tensor([32, 2 ** 40], 8, 0)),
      "tensor of impossible size": gguf(1, [architecture], tensor([0, 2n ** 64n - 1n, 2n ** 64n - 1n], 0, 2n ** 64n - 1n)),
      "tensor of unknown type": gguf(1, [architecture], tensor([32], 4, 0)),
      "tensor of half a block": gguf(1, [architecture], tensor([31], 8, 0)),
      alignment: gguf(0, [architecture, entry("general.alignment", 4, u32(3))]),
    };
    for (const [name, bytes] of Object.entries(claims))
      expect([name, errorOf(bytes).code]).toEqual([name, expect.stringMatching(/^(invalid|truncated)_gguf$/)]);
  });
});
