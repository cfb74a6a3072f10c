import { describe, expect, test } from "vitest";
import { readGgufModel } from "../../registry/gguf-model.js";
import { resolveSource } from "../../registry/source.js";
import { modelFacts } from "./model-facts.js";

const model = readGgufModel(resolveSource("builtin:pagoda-tiny").path);

describe("the facts of a model", () => {
  test("are those of its file's header", () => {
    expect(modelFacts(model, "f16")).toEqual({ trainedContextTokens: 2048, kvBytesPerToken: 1536, weightBytes: model.tensorBytes, layers: 6, canTrim: true });
    expect(modelFacts(model, "q8_0").kvBytesPerToken).toBe(816);
    expect(modelFacts(model, "q4_0").kvBytesPerToken).toBe(432);
  });

  test("count the heads of each layer by itself", () => {
    expect(modelFacts({ ...model, kvHeadCounts: [1, 0, 2, 0, 0, 0] }, "f16").kvBytesPerToken).toBe(3 * 128 * 2);
  });

  test("say that windows and states cannot be trimmed", () => {
    expect(modelFacts({ ...model, slidingWindowTokens: 512 }, "f16").canTrim).toBe(false);
    for (const memory of ["recurrent", "hybrid"] as const) expect(modelFacts({ ...model, memory }, "f16").canTrim).toBe(false);
  });
});
