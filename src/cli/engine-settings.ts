/** What an engine is told to load, from the configuration of its model. */
import type { ModelConfig } from "../config/index.js";
import type { EngineSettings } from "../engine/protocol.js";

/** @param machineShare - the part of the machine that `auto` values of this model may count on, above 0 and at most 1. */
export function engineSettings({ engine, scheduler, kv }: ModelConfig, modelPath: string, machineShare: number): EngineSettings {
  return {
    modelPath,
    backend: engine.backend,
    libraries: engine.libraries,
    threads: engine.threads,
    gpuLayers: engine.gpuLayers,
    flashAttention: engine.flashAttention,
    kvLayout: kv.layout,
    kvTokens: kv.tokens,
    kvPageTokens: kv.pageTokens,
    kvType: kv.type,
    maxSequences: scheduler.maxSequences,
    maxBatchTokens: scheduler.maxBatchTokens,
    maxQueuedRequests: scheduler.maxQueuedRequests,
    maxQueuedTokens: scheduler.maxQueuedTokens,
    sharePrefixes: scheduler.sharePrefixes,
    machineShare,
  };
}
