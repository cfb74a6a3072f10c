/** Settles what the settings leave open: threads, sequences, the KV cache's layout and size, layers on the GPU. Pure. */
import { settingDoesNotFit } from "../../errors.js";
import type { EngineSettings } from "../protocol.js";
import type { Machine } from "./machine.js";

/** What planning must know of a model, all of it in its file's header. */
export interface ModelFacts {
  /** 0 when the file does not say. */
  readonly trainedContextTokens: number;
  /** Bytes of keys and values of one token over all layers, in the type that is set; 0 for a model without attention. */
  readonly kvBytesPerToken: number;
  readonly weightBytes: number;
  readonly layers: number;
  /** Whether a cached sequence's tail can be dropped, as far as the header tells. */
  readonly canTrim: boolean;
}

/** The GPUs' memory together; undefined when the CPU computes. */
export type GpuMemory = { readonly freeBytes: number } | undefined;

export interface EnginePlan {
  readonly threads: number;
  /** What the model is loaded with; llama.cpp counts the output layer as one more. */
  readonly gpuLayers: number;
  readonly kvLayout: "streams" | "unified";
  /** Tokens of the whole cache, in units that llama.cpp does not round up. */
  readonly kvTokens: number;
  readonly maxSequences: number;
  /** Sequence ids of the engine: at least one for each running sequence. */
  readonly slots: number;
}

/** llama.cpp rounds each stream of the cache up to a multiple of this. */
const kvUnitTokens = 256;
/** llama.cpp knows no more sequence ids than this. */
const mostSlots = 256;
const autoMaxSequences = 16;
/** For a file that does not say what context it was trained with. */
const assumedContextTokens = 4096;
/**
 * Weights that a step must read for each thread. The threads meet several times in every layer and spin while they wait: in a small model that takes
 * longer than the work, and many times longer when another program wants one of the cores.
 */
const leastThreadBytes = 16 * 2 ** 20;
const mostThreadsPerCore = 4;
/** Left free beside weights and cache, for compute buffers and everybody else. */
const reserveBytes = { cpu: 256 * 2 ** 20, gpu: 512 * 2 ** 20 };
/** The part of what is left that an automatic cache takes: other programs want memory of the machine, nobody else wants the GPU's. */
const autoShare = { cpu: 0.5, gpu: 0.9 };

/** The model's context, in tokens. */
export function contextOf(model: Pick<ModelFacts, "trainedContextTokens">): number {
  return model.trainedContextTokens > 0 ? model.trainedContextTokens : assumedContextTokens;
}

/** Throws `setting_does_not_fit`, with the numbers, when an explicit setting or the least possible cache is more than the machine has. */
export function planEngine(settings: EngineSettings, model: ModelFacts, machine: Machine, gpu: GpuMemory): EnginePlan {
  const share = settings.machineShare ?? 1;
  const maxSequences = planMaxSequences(settings);
  const gpuLayers = planGpuLayers(settings, model, gpu);
  const isOnGpu = gpu !== undefined && gpuLayers >= model.layers;
  const memory = isOnGpu ? { availableBytes: gpu.freeBytes, kind: "gpu" as const } : { availableBytes: machine.availableBytes, kind: "cpu" as const };
  const budgetBytes = Math.max(0, (memory.availableBytes - model.weightBytes - reserveBytes[memory.kind]) * autoShare[memory.kind] * share);
  const kv = planKv(settings, model, { maxSequences, budgetBytes, availableBytes: memory.availableBytes, prefersStreams: gpuLayers === 0 });
  return {
    threads: settings.threads === "auto" ? planThreads(model, machine.cores * share) : explicitThreads(settings.threads, machine.cores),
    gpuLayers,
    maxSequences,
    ...kv,
    slots: kv.kvLayout === "streams" ? maxSequences : planUnifiedSlots(maxSequences, model.canTrim),
  };
}

/** As many as there are cores, but none that would have less to compute between two meetings with the others than a meeting costs. */
function planThreads(model: ModelFacts, cores: number): number {
  return Math.max(1, Math.min(Math.floor(cores), Math.ceil(model.weightBytes / leastThreadBytes)));
}

/** A few threads too many are slow; with many times as many as cores, hardly any step ends, because those that wait spin. */
function explicitThreads(threads: number, cores: number): number {
  const most = mostThreadsPerCore * cores;
  if (threads <= most) return threads;
  const message = `engine.threads is ${threads}, but this process may compute on ${cores} ${cores === 1 ? "core" : "cores"} of the machine; at most ${most} threads (${mostThreadsPerCore} for each) are taken. auto fits them to the machine.`;
  throw settingDoesNotFit({ message });
}

function planMaxSequences({ maxSequences, maxBatchTokens }: EngineSettings): number {
  if (maxSequences === "auto") return Math.min(autoMaxSequences, maxBatchTokens);
  if (maxSequences > maxBatchTokens) {
    const message = `scheduler.maxSequences is ${maxSequences}, but each running sequence needs a token of every step and scheduler.maxBatchTokens is ${maxBatchTokens}.`;
    throw settingDoesNotFit({ message });
  }
  return maxSequences;
}

/** Twice as many slots as running sequences, so that finished ones stay cached beside them. A model that cannot trim pays for each slot with memory of its own. */
function planUnifiedSlots(maxSequences: number, canTrim: boolean): number {
  return canTrim ? Math.min(mostSlots, 2 * maxSequences) : maxSequences;
}

interface KvLimits {
  readonly maxSequences: number;
  readonly budgetBytes: number;
  readonly availableBytes: number;
  readonly prefersStreams: boolean;
}

/**
 * Streams are faster on a CPU, but a sequence cannot use more than its own: they are chosen only where that takes nothing from any sequence,
 * because each can have the whole context. Otherwise all share one pool.
 */
function planKv(settings: EngineSettings, model: ModelFacts, limits: KvLimits): Pick<EnginePlan, "kvLayout" | "kvTokens"> {
  const { maxSequences, prefersStreams } = limits;
  const wholeContext = roundUp(contextOf(model));
  const total = settings.kvTokens === "auto" ? autoKvTokens(model, limits, wholeContext * maxSequences) : settings.kvTokens;
  const kvLayout = settings.kvLayout === "auto" ? (prefersStreams && total >= wholeContext * maxSequences ? "streams" : "unified") : settings.kvLayout;
  const streams = kvLayout === "streams" ? maxSequences : 1;
  const streamTokens = settings.kvTokens === "auto" ? roundDown(total / streams) : roundUp(total / streams);
  // A machine with little memory still gets the smallest cache; whether that fits is checked below.
  const kvTokens = Math.max(kvUnitTokens, streamTokens) * streams;
  refuseWhatDoesNotFit(settings, model, kvTokens, limits.availableBytes);
  return { kvLayout, kvTokens };
}

function autoKvTokens(model: ModelFacts, { budgetBytes }: KvLimits, wantedTokens: number): number {
  return model.kvBytesPerToken === 0 ? wantedTokens : Math.min(wantedTokens, budgetBytes / model.kvBytesPerToken);
}

function refuseWhatDoesNotFit(settings: EngineSettings, model: ModelFacts, kvTokens: number, availableBytes: number): void {
  const neededBytes = kvTokens * model.kvBytesPerToken;
  if (neededBytes <= availableBytes) return;
  const wanted =
    settings.kvTokens === "auto" ? `The smallest KV cache, ${kvTokens} tokens,` : `kv.tokens is ${settings.kvTokens}, and a KV cache of ${kvTokens} tokens`;
  const fitting = roundDown(availableBytes / model.kvBytesPerToken);
  throw settingDoesNotFit({
    message: `${wanted} needs ${mebibytes(neededBytes)} MiB (${model.kvBytesPerToken} bytes a token as ${settings.kvType}), but only ${mebibytes(availableBytes)} MiB are available; at most ${fitting} tokens fit.`,
  });
}

/** All layers where weights and a cache for one whole context fit into the GPUs' memory, otherwise as many as do. */
function planGpuLayers(settings: EngineSettings, model: ModelFacts, gpu: GpuMemory): number {
  if (gpu === undefined) return 0;
  const all = model.layers + 1;
  if (settings.gpuLayers !== "auto") return Math.min(settings.gpuLayers, all);
  const usableBytes = (gpu.freeBytes - reserveBytes.gpu) * autoShare.gpu;
  const neededBytes = model.weightBytes + contextOf(model) * model.kvBytesPerToken;
  if (neededBytes <= usableBytes) return all;
  return Math.max(0, Math.floor((model.layers * usableBytes) / neededBytes));
}

function roundUp(tokens: number): number {
  return Math.ceil(tokens / kvUnitTokens) * kvUnitTokens;
}

function roundDown(tokens: number): number {
  return Math.floor(tokens / kvUnitTokens) * kvUnitTokens;
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / 2 ** 20);
}
