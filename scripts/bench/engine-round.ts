/** One round of Pagoda's engine in a process of its own: gets a job as a message, sends every step's message and at last the result. */
import { createLlamaExecutor, type LlamaExecutor } from "../../src/engine/executor/llama-executor.js";
import { createContext, type LlamaContext, type LlamaModel, loadModel, openLlama } from "../../src/engine/llama/index.js";
import { schedulerOptions } from "../../src/engine/planner/scheduler-options.js";
import type { EngineSettings } from "../../src/engine/protocol.js";
import type { SchedulerOptions } from "../../src/scheduler/options.js";
import type { EngineJob, OwnRound } from "./engine-job.js";
import { measureOwnEngine } from "./own-engine.js";

const pageTokens = 32;

async function runRound(job: EngineJob): Promise<OwnRound> {
  const log = (level: string, text: string): void => {
    if (level === "error" || level === "warn") process.stderr.write(`${text}\n`);
  };
  const llama = await openLlama({ backend: "cpu", libraries: job.libraries, log });
  const model = await loadModel(llama, { path: job.modelPath, gpuLayers: 0 });
  const sequences = Math.max(...job.sequenceCounts);
  const context = await createContext(model, {
    layout: job.kvLayout,
    kvTokens: job.contextTokens * sequences,
    maxSequences: sequences,
    batchTokens: job.batchTokens,
    kvType: "f16",
    threads: job.threads,
    flashAttention: job.flashAttention,
  });
  const executor = createLlamaExecutor({ context });
  const options = optionsFor(job, context, sequences);
  const round = await measureOwnEngine({ executor, options, vocabularySize: model.vocabularySize, nativeTime: () => ({ ...executor.spent }) }, job, (message) =>
    process.send?.(message),
  );
  await closeAll(executor, context, model);
  return { ...round, modelBytes: model.sizeBytes, kvBytes: context.kvBytes };
}

/** What the engine process would tell its scheduler with these settings. */
function optionsFor(job: EngineJob, context: LlamaContext, sequences: number): SchedulerOptions {
  const kvTokens = job.contextTokens * sequences;
  const settings: EngineSettings = {
    modelPath: job.modelPath,
    backend: "cpu",
    libraries: job.libraries,
    threads: job.threads,
    gpuLayers: 0,
    flashAttention: job.flashAttention,
    kvLayout: job.kvLayout,
    kvTokens,
    kvPageTokens: pageTokens,
    kvType: "f16",
    maxSequences: sequences,
    maxBatchTokens: job.batchTokens,
    maxQueuedRequests: sequences,
    maxQueuedTokens: kvTokens,
    sharePrefixes: true,
  };
  const plan = { threads: job.threads, gpuLayers: 0, kvLayout: job.kvLayout, kvTokens, maxSequences: sequences, slots: sequences };
  const { trainedContextTokens, canTrim } = context.model;
  return schedulerOptions(settings, plan, {
    contextTokens: context.kvTokens,
    streamTokens: context.sequenceTokens,
    batchTokens: context.batchTokens,
    trainedContextTokens,
    canTrim,
  });
}

async function closeAll(executor: LlamaExecutor, context: LlamaContext, model: LlamaModel): Promise<void> {
  executor.close();
  await context.close();
  model.close();
  model.llama.close();
}

process.once("message", (job) => {
  runRound(job as EngineJob).then(
    (result) => process.send?.({ type: "result", result }, () => process.disconnect()),
    (error: unknown) => {
      console.error(error);
      process.exit(1);
    },
  );
});
