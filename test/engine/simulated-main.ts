/**
 * An engine process without a model, for tests of supervision: the real process, protocol, scheduler and step loop on the simulated executor.
 * The model path says how it behaves: `simulated:?stepMs=5&poison=666&broken=667&failLoad=yes&crashLoad=yes&stuckLoad=yes&loadMs=200`.
 */
import { writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { planEngine } from "../../src/engine/planner/plan-engine.js";
import { schedulerOptions } from "../../src/engine/planner/scheduler-options.js";
import type { EngineInfo, EngineSettings, ModelInfo } from "../../src/engine/protocol.js";
import { type LoadedEngine, runEngineProcess } from "../../src/engine/runner/run-engine-process.js";
import { createSimulatedExecutor, simulatedEndToken } from "../../src/engine/simulated/simulated-executor.js";
import { invalidRequest } from "../../src/errors.js";
import type { StepPlan } from "../../src/scheduler/step-plan.js";
import { poisonText, simulatedContextTokens, simulatedModel } from "./simulated-model.js";

runEngineProcess(async (settings, onProgress) => {
  const behaviour = new URL(settings.modelPath).searchParams;
  onProgress(0.5);
  await delay(Number(behaviour.get("loadMs") ?? 0));
  if (behaviour.has("failLoad")) throw invalidRequest({ message: "The simulated model cannot be loaded." });
  if (behaviour.has("crashLoad")) {
    console.error("about to crash while loading");
    process.abort();
  }
  if (behaviour.has("stuckLoad")) {
    writeSync(2, "stuck while loading\n"); // unlike console.error, this is out before the event loop stops for good
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  }
  return simulatedEngine(settings, behaviour);
});

function simulatedEngine(settings: EngineSettings, behaviour: URLSearchParams): LoadedEngine {
  const stepMs = Number(behaviour.get("stepMs") ?? 0);
  const tokenOf = (name: string): number => Number(behaviour.get(name) ?? Number.NaN);
  const has = (plan: StepPlan, token: number): boolean => plan.rows.some((row) => row.tokens.includes(token));
  const facts = { trainedContextTokens: simulatedContextTokens, kvBytesPerToken: 0, weightBytes: 0, layers: 1, canTrim: true };
  const plan = planEngine(settings, facts, { cores: 1, availableBytes: 1e9 }, undefined);
  const streams = plan.kvLayout === "streams" ? plan.maxSequences : 1;
  const options = schedulerOptions(settings, plan, {
    ...facts,
    contextTokens: plan.kvTokens,
    streamTokens: plan.kvTokens / streams,
    batchTokens: settings.maxBatchTokens,
  });
  const beforeRows = async (step: StepPlan): Promise<void> => {
    if (stepMs > 0) await delay(stepMs);
    if (has(step, tokenOf("broken"))) throw new Error("the device is broken");
    if (has(step, tokenOf("poison"))) process.abort();
  };
  return {
    model: modelInfo(),
    engine: engineInfo(settings, plan.threads, plan.kvLayout, plan.kvTokens, plan.maxSequences, options.contextTokens),
    schedulerOptions: options,
    executor: createSimulatedExecutor({ kv: options.kv, model: simulatedModel, beforeRows }),
    async tokenize(segments) {
      if (segments.some(({ text }) => text.includes(poisonText))) process.abort();
      return segments.map(({ text }) => Array.from(text, (character) => character.codePointAt(0) ?? 0));
    },
    async close() {},
  };
}

function modelInfo(): ModelInfo {
  const sizes = { sizeBytes: 0, parameterCount: 0, vocabularySize: simulatedModel.vocabularySize, embeddingSize: 1 };
  const vocabulary = { pieces: "", pieceLengths: "", special: [], endOfGeneration: [simulatedEndToken], bos: undefined, eos: undefined };
  return {
    name: "simulated",
    description: "no model at all",
    architecture: "simulated",
    ...sizes,
    trainedContextTokens: simulatedContextTokens,
    fileType: "none",
    chatTemplate: undefined,
    tokens: { type: "none", ...vocabulary, addBos: false, addEos: false, addSpacePrefix: false },
    canTrim: true,
  };
}

function engineInfo(
  settings: EngineSettings,
  threads: number,
  kvLayout: EngineInfo["kvLayout"],
  kvTokens: number,
  maxSequences: number,
  contextTokens: number,
): EngineInfo {
  const sizes = { kvBytes: 0, modelBytes: 0, pageTokens: settings.kvPageTokens, maxBatchTokens: settings.maxBatchTokens };
  const kinds = { llamaVersion: "none", ggmlCommit: "none", backend: "simulated", devices: [], gpuLayers: 0 };
  return { ...kinds, ...sizes, threads, kvLayout, kvTokens, maxSequences, contextTokens };
}
