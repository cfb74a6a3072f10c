/** Makes the real engine: plans for this machine, loads the model, makes its context. */
import { readGgufModel } from "../../registry/gguf-model.js";
import { createLlamaExecutor } from "../executor/llama-executor.js";
import { createContext, describeModel, type Llama, type LlamaContext, type LlamaLog, type LlamaModel, loadModel, openLlama, tokenize } from "../llama/index.js";
import { readMachine } from "../planner/machine.js";
import { modelFacts } from "../planner/model-facts.js";
import { type EnginePlan, type GpuMemory, planEngine } from "../planner/plan-engine.js";
import { schedulerOptions } from "../planner/scheduler-options.js";
import type { EngineInfo, EngineSettings } from "../protocol.js";
import type { LoadEngine, LoadedEngine } from "./run-engine-process.js";

/** Loads a GGUF model with llama.cpp. Rejects with coded errors; what was made until then is freed. */
export const loadLlamaEngine: LoadEngine = async (settings, onProgress) => {
  // A file that is no model, or does not fit, is refused before anything native is opened or any weight is read.
  const facts = modelFacts(readGgufModel(settings.modelPath), settings.kvType);
  const llama = await openLlama({ backend: settings.backend, libraries: settings.libraries, log: writeLog });
  const undo: (() => void | Promise<void>)[] = [llama.close];
  try {
    const plan = planEngine(settings, facts, readMachine(), gpuMemory(llama));
    const model = await loadModel(llama, { path: settings.modelPath, gpuLayers: plan.gpuLayers, onProgress });
    undo.unshift(model.close);
    const context = await createContext(model, contextOptions(settings, plan));
    undo.unshift(context.close);
    return assemble(settings, plan, context, undo);
  } catch (error) {
    await closeAll(undo);
    throw error;
  }
};

function assemble(settings: EngineSettings, plan: EnginePlan, context: LlamaContext, undo: (() => void | Promise<void>)[]): LoadedEngine {
  const { model } = context;
  const options = schedulerOptions(settings, plan, {
    contextTokens: context.kvTokens,
    streamTokens: context.sequenceTokens,
    batchTokens: context.batchTokens,
    trainedContextTokens: model.trainedContextTokens,
    canTrim: model.canTrim,
  });
  const executor = createLlamaExecutor({ context });
  undo.unshift(executor.close);
  return {
    model: describeModel(model),
    engine: engineInfo(plan, context, options),
    schedulerOptions: options,
    executor,
    tokenize: (segments, addSpecial) => tokenize(model, segments, { addSpecial }),
    close: () => closeAll(undo),
  };
}

/** In order: what was made last is closed first. */
async function closeAll(undo: readonly (() => void | Promise<void>)[]): Promise<void> {
  for (const close of undo) await close();
}

function contextOptions(settings: EngineSettings, plan: EnginePlan): Parameters<typeof createContext>[1] {
  const { kvType, flashAttention, maxBatchTokens } = settings;
  const { kvLayout, kvTokens, slots, threads } = plan;
  return { layout: kvLayout, kvTokens, maxSequences: slots, batchTokens: maxBatchTokens, kvType, threads, flashAttention };
}

function engineInfo(plan: EnginePlan, context: LlamaContext, options: LoadedEngine["schedulerOptions"]): EngineInfo {
  const { model } = context;
  return {
    ...libraryInfo(model),
    threads: plan.threads,
    gpuLayers: model.gpuLayers,
    kvLayout: plan.kvLayout,
    kvTokens: context.kvTokens,
    kvBytes: context.kvBytes,
    modelBytes: model.sizeBytes,
    pageTokens: options.kv.pageTokens,
    maxSequences: options.maxSequences,
    maxBatchTokens: options.maxBatchTokens,
    contextTokens: options.contextTokens,
  };
}

function libraryInfo({ llama }: LlamaModel): Pick<EngineInfo, "llamaVersion" | "ggmlCommit" | "backend" | "devices"> {
  const devices = llama.devices.map(({ name, description }) => `${name} (${description})`);
  return { llamaVersion: llama.version, ggmlCommit: llama.ggmlCommit, backend: llama.backend, devices };
}

/** The memory of the GPUs that compute; integrated ones count only where there are no others. */
function gpuMemory({ backend, devices }: Llama): GpuMemory {
  if (backend === "cpu") return undefined;
  const own = devices.filter(({ kind }) => kind === "gpu");
  const used = own.length > 0 ? own : devices.filter(({ kind }) => kind === "integrated");
  return { freeBytes: used.reduce((sum, { freeBytes }) => sum + freeBytes, 0) };
}

/** The parent reads the lines and keeps the last for the report of a crash. */
const writeLog: LlamaLog = (level, text) => {
  if (level !== "debug") console.error(`${level}: ${text}`);
};
