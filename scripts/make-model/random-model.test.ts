import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createContext, type Llama, loadModel, openLlama, tokenize } from "../../src/engine/llama/index.js";
import { tensorBytes, tensorTypes, weightCount } from "./gguf-format.js";
import { readGgufHeader } from "./gguf-reader.js";
import { type RandomModel, tensorsOf, writeRandomModel } from "./random-model.js";
import { presets, shapeProblem } from "./shapes.js";
import { byteVocabulary } from "./test-entries.js";

const folder = mkdtempSync(join(tmpdir(), "random-model-"));
const shape = { layers: 3, width: 96, heads: 6, kvHeads: 2, feedForward: 160, contextTokens: 512 };
const base: RandomModel = { name: "test", shape, vocabulary: byteVocabulary(), type: "q8_0", seed: 1, tieEmbeddings: true };
const variants: readonly Partial<RandomModel>[] = [{}, { type: "f16" }, { tieEmbeddings: false }, { type: "f16", tieEmbeddings: false }];

let llama: Llama;
beforeAll(async () => {
  llama = await openLlama({ backend: "cpu", libraries: "bundled", log: () => undefined });
});
afterAll(() => {
  llama.close();
  rmSync(folder, { recursive: true });
});

describe.each(variants)("a random model with %o", (variant) => {
  const model: RandomModel = { ...base, ...variant };

  test("is loaded by llama.cpp as what it was made to be", async () => {
    const path = join(folder, "model.gguf");
    const { parameters } = writeRandomModel(path, model);
    const loaded = await loadModel(llama, { path, gpuLayers: 0 });
    try {
      expect(loaded.architecture).toBe("llama");
      expect(loaded.layers).toBe(shape.layers);
      expect(loaded.embeddingSize).toBe(shape.width);
      expect(loaded.trainedContextTokens).toBe(shape.contextTokens);
      expect(loaded.vocabularySize).toBe(model.vocabulary.tokens);
      expect(loaded.parameterCount).toBe(parameters);
      expect(loaded.metadata("general.name")).toBe("test");
    } finally {
      loaded.close();
    }
  });

  test("is the same file for the same seed, and another for another", () => {
    const write = (seed: number): Buffer => {
      const path = join(folder, `seed-${seed}.gguf`);
      writeRandomModel(path, { ...model, seed });
      return readFileSync(path);
    };
    const first = write(1);
    expect(write(1).equals(first)).toBe(true);
    expect(write(2).equals(first)).toBe(false);
  });

  test("has the tensors that were planned, and nothing after the last", () => {
    const path = join(folder, "tensors.gguf");
    const { bytes } = writeRandomModel(path, model);
    const planned = tensorsOf(model);
    const header = readGgufHeader(readFileSync(path));
    expect(header.tensors.map(({ name, typeTag }) => ({ name, typeTag }))).toEqual(planned.map(({ name, type }) => ({ name, typeTag: tensorTypes[type].tag })));
    const last = header.tensors.at(-1);
    const lastPlanned = planned.at(-1);
    if (last === undefined || lastPlanned === undefined) throw new Error("The model has no tensors.");
    expect(bytes - (last.offset + tensorBytes(lastPlanned))).toBeLessThan(32);
    expect(planned.some((tensor) => tensor.name === "output.weight")).toBe(!model.tieEmbeddings);
  });
});

test("a random model tokenizes with the vocabulary that was put into it", async () => {
  const path = join(folder, "tokens.gguf");
  writeRandomModel(path, base);
  const loaded = await loadModel(llama, { path, gpuLayers: 0, vocabularyOnly: true });
  try {
    const [ids] = await tokenize(loaded, [{ text: "é", parseSpecial: false }], { addSpecial: false });
    // Three control tokens, then the bytes: the two of é are the last of the text.
    expect(ids?.slice(-2)).toEqual([3 + 0xc3, 3 + 0xa9]);
  } finally {
    loaded.close();
  }
});

test.each(["q8_0", "f16"] as const)(
  "a random %s model of 30 layers has finite logits, spread as in a trained model, that differ from context to context",
  async (type) => {
    const path = join(folder, "deep.gguf");
    writeRandomModel(path, { ...base, type, shape: { ...shape, layers: 30 } });
    const model = await loadModel(llama, { path, gpuLayers: 0 });
    const options = { layout: "streams", kvTokens: 512, maxSequences: 2, batchTokens: 64, kvType: "f16", threads: 1, flashAttention: true } as const;
    const context = await createContext(model, options);
    try {
      const prompt = (first: number): Int32Array => Int32Array.from({ length: 20 }, (_, i) => (first + 7 * i) % model.vocabularySize);
      context.batch.clear();
      context.batch.add(prompt(5), 0, 0, true);
      context.batch.add(prompt(6), 1, 0, true);
      expect(await context.decode()).toBe(0);
      const [one, other] = [0, 1].map((output) => Array.from(context.logits(output)));
      for (const logits of [one ?? [], other ?? []]) {
        expect(logits).toHaveLength(model.vocabularySize);
        const deviation = Math.sqrt(logits.reduce((sum, logit) => sum + logit ** 2, 0) / logits.length);
        expect(deviation).toBeGreaterThan(1.5);
        expect(deviation).toBeLessThan(6);
      }
      expect(other).not.toEqual(one);
    } finally {
      await context.close();
      model.close();
    }
  },
);

describe("shapes", () => {
  test.each(Object.entries(presets))("%s can be run in every type", (_, preset) => {
    for (const type of Object.values(tensorTypes)) expect(shapeProblem(preset, type.blockWeights)).toBeUndefined();
  });

  test("135m has SmolLM's weights apart from its vocabulary", () => {
    const preset = presets["135m"];
    if (preset === undefined) throw new Error("There is no 135m shape.");
    const tensors = tensorsOf({ ...base, shape: preset, vocabulary: { ...base.vocabulary, tokens: 49_152 } });
    expect(tensors.reduce((sum, tensor) => sum + weightCount(tensor), 0)).toBe(134_515_008);
  });

  test.each([
    [{ heads: 7 }, "cannot be divided among 7 heads"],
    [{ kvHeads: 4 }, "cannot share 4 KV heads"],
    [{ width: 6 * 33, heads: 6 }, "is odd"],
    [{ width: 6 * 34, heads: 6 }, "no multiple of 32"],
    [{ feedForward: 100 }, "feed-forward width 100"],
  ])("with %o are refused with the reason", (change, reason) => {
    expect(shapeProblem({ ...shape, ...change }, 32)).toContain(reason);
  });
});
