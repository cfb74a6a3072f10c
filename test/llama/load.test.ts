import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import koffi from "koffi";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createContext, describeModel, type Llama, loadModel, openLlama } from "../../src/engine/llama/index.js";
import { readGgufHeader } from "../../src/registry/gguf-header.js";
import { openTestLlama, tinyModelPath } from "./harness.js";

let llama: Llama;
const folder = mkdtempSync(join(tmpdir(), "pagoda-load-"));
beforeAll(async () => {
  llama = await openTestLlama();
});
afterAll(() => {
  llama.close();
  rmSync(folder, { recursive: true });
});

function variant(name: string, change: (bytes: Buffer) => Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, change(readFileSync(tinyModelPath)));
  return path;
}

/** Puts text of the same length in place of other text, everywhere in the file's head. */
const replaced = (from: string, to: string) => (bytes: Buffer) => {
  for (let at = bytes.indexOf(from); at >= 0 && at < 40_000; at = bytes.indexOf(from, at + 1)) bytes.write(to, at, "latin1");
  return bytes;
};

/** Puts another place into a tensor's entry: name, number of dimensions, the only dimension, type, place. */
const withTensorOffset = (name: string, offset: number) => (bytes: Buffer) => {
  bytes.writeBigUInt64LE(BigInt(offset), bytes.indexOf(name) + name.length + 4 + 8 + 4);
  return bytes;
};

describe("opening the libraries", () => {
  test("tells the release, the commit and what computes", () => {
    expect(llama.version).toMatch(/^0\.4\.0/);
    expect(llama.ggmlCommit).toMatch(/^[0-9a-f]{7,}$/);
    expect(llama.backend).toBe("cpu");
    expect(llama.devices.some(({ kind }) => kind === "cpu")).toBe(true);
  });

  test("refuses a folder without libraries", async () => {
    await expect(openLlama({ backend: "cpu", libraries: folder, log: () => {} })).rejects.toMatchObject({ code: "engine_libraries_unusable" });
  });
});

describe("loading a model", () => {
  test("describes it, with the vocabulary as bytes", async () => {
    const model = await loadModel(llama, { path: tinyModelPath, gpuLayers: 0 });
    const info = describeModel(model);
    expect(info).toMatchObject({
      name: "pagoda-tiny",
      architecture: "llama",
      vocabularySize: 1024,
      trainedContextTokens: 2048,
      fileType: "Q8_0",
      canTrim: true,
    });
    expect(info.chatTemplate).toBe(readGgufHeader(tinyModelPath).chatTemplate);
    const lengths = Buffer.from(info.tokens.pieceLengths, "base64");
    let total = 0;
    for (let at = 0; at < lengths.length; at += 2) total += lengths.readUInt16LE(at);
    expect(lengths.length).toBe(2 * 1024);
    expect(Buffer.from(info.tokens.pieces, "base64").length).toBe(total);
    expect(info.tokens.special.map(({ text }) => text)).toEqual(["<|endoftext|>", "<|im_start|>", "<|im_end|>"]);
    expect(info.tokens.endOfGeneration).toContain(info.tokens.special.find(({ text }) => text === "<|im_end|>")?.id);
    model.close();
  });

  test("reports progress up to the end", async () => {
    const fractions: number[] = [];
    const model = await loadModel(llama, { path: tinyModelPath, gpuLayers: 0, onProgress: (fraction) => fractions.push(fraction) });
    model.close();
    expect(fractions.at(-1)).toBe(1);
    expect([...fractions].sort((a, b) => a - b)).toEqual(fractions);
  });

  test("can be cancelled before and while it loads", async () => {
    await expect(loadModel(llama, { path: tinyModelPath, gpuLayers: 0, signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "model_load_cancelled" });
    const controller = new AbortController();
    const loading = loadModel(llama, { path: tinyModelPath, gpuLayers: 0, signal: controller.signal, onProgress: () => controller.abort() });
    await expect(loading).rejects.toMatchObject({ code: "model_load_cancelled" });
  });

  test.each([
    ["an unknown architecture", () => variant("architecture.gguf", replaced("llama", "xlama")), "model_unsupported", /architecture/],
    ["an unknown tokenizer", () => variant("tokenizer.gguf", replaced("gpt2", "gptX")), "model_unsupported", /tokenizer/],
    ["a missing tensor", () => variant("tensor.gguf", replaced("output_norm.weight", "output_nirm.weight")), "model_unsupported", /output_norm/],
    [
      "a tensor at the wrong place",
      () => variant("offset.gguf", withTensorOffset("output_norm.weight", 32)),
      "model_load_failed",
      /output_norm.weight.*offset 32/,
    ],
    ["a last tensor cut off", () => variant("cut.gguf", (bytes) => bytes.subarray(0, bytes.length - 100)), "truncated_gguf", /truncated/],
    ["a text", () => variant("text.gguf", () => Buffer.from("no model")), "not_gguf", /GGUF/],
  ])("with %s is refused in one clear line", async (_, path, code, reason) => {
    const error = await loadModel(llama, { path: path(), gpuLayers: 0 }).then(
      (model) => model.close(),
      (thrown: unknown) => thrown,
    );
    expect(error).toMatchObject({ code, message: expect.stringMatching(reason) });
    expect((error as Error).message).not.toContain("\n");
  });

  test("keeps no callback registered, however it ends", async () => {
    const { callbacks } = koffi.stats();
    const cancelled = loadModel(llama, { path: tinyModelPath, gpuLayers: 0, signal: AbortSignal.abort() });
    const failed = loadModel(llama, { path: variant("failed.gguf", replaced("llama", "xlama")), gpuLayers: 0 });
    for (const loading of [cancelled, failed]) await expect(loading).rejects.toThrow();
    (await loadModel(llama, { path: tinyModelPath, gpuLayers: 0 })).close();
    expect(koffi.stats().callbacks).toBe(callbacks);
  });

  test("of the vocabulary alone is enough to describe it", async () => {
    const model = await loadModel(llama, { path: tinyModelPath, gpuLayers: 0, vocabularyOnly: true });
    expect(describeModel(model).tokens.endOfGeneration.length).toBeGreaterThan(0);
    model.close();
  });
});

describe("making a context", () => {
  const options = { layout: "streams", kvTokens: 1024, maxSequences: 4, batchTokens: 64, kvType: "f16", threads: 1, flashAttention: "auto" } as const;

  test("tells what it was rounded to", async () => {
    const model = await loadModel(llama, { path: tinyModelPath, gpuLayers: 0 });
    const streams = await createContext(model, { ...options, kvTokens: 1000 });
    expect(streams).toMatchObject({ kvTokens: 1024, sequenceTokens: 256, maxSequences: 4, batchTokens: 64, kvBytes: 1024 * 1536 });
    const unified = await createContext(model, { ...options, layout: "unified" });
    expect(unified).toMatchObject({ kvTokens: 1024, sequenceTokens: 1024 });
    await streams.close();
    await unified.close();
    await unified.close(); // harmless
    model.close();
  });

  test("that cannot be had is a coded error and leaves the model usable", async () => {
    const model = await loadModel(llama, { path: tinyModelPath, gpuLayers: 0 });
    // A quantized V cache needs flash attention, and llama.cpp knows 256 sequences.
    await expect(createContext(model, { ...options, kvType: "q8_0", flashAttention: false })).rejects.toMatchObject({ code: "engine_context_failed" });
    await expect(createContext(model, { ...options, maxSequences: 257 })).rejects.toMatchObject({ code: "engine_context_failed" });
    const context = await createContext(model, options);
    await context.close();
    model.close();
  });
});
