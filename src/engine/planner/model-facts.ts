/** Reads what planning needs of a model from its files' headers. */
import { kvBytesPerToken } from "../../registry/gguf-header.js";
import type { GgufModel } from "../../registry/gguf-model.js";
import { kvElementBytes } from "../llama/kv-types.js";
import type { EngineSettings } from "../protocol.js";
import type { ModelFacts } from "./plan-engine.js";

export function modelFacts(model: GgufModel, kvType: EngineSettings["kvType"]): ModelFacts {
  return {
    trainedContextTokens: model.trainedContextTokens,
    kvBytesPerToken: kvBytesPerToken(model, kvElementBytes[kvType]),
    weightBytes: model.weightBytes,
    layers: model.blockCount,
    canTrim: model.memory === "attention" && model.slidingWindowTokens === 0,
  };
}
