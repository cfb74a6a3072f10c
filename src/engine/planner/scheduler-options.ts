/** Tells the scheduler what the engine's context really is: its arenas, slots and limits. Pure. */
import { settingDoesNotFit } from "../../errors.js";
import type { KvGeometry } from "../../kv-cache/geometry.js";
import type { SchedulerOptions } from "../../scheduler/options.js";
import type { EngineSettings } from "../protocol.js";
import { contextOf, type EnginePlan } from "./plan-engine.js";

/** The context as llama.cpp made it: it may have rounded what it was asked for. */
export interface ActualContext {
  readonly contextTokens: number;
  /** Tokens of one stream; of the whole cache in the unified layout. */
  readonly streamTokens: number;
  /** Tokens of one computation at most. */
  readonly batchTokens: number;
  readonly trainedContextTokens: number;
  readonly canTrim: boolean;
}

/** Prompts that wait hold this many times the cache at most, when nothing else is set: more would wait for minutes. */
const queuedCaches = 16;

export function schedulerOptions(settings: EngineSettings, plan: EnginePlan, actual: ActualContext): SchedulerOptions {
  const kv = kvGeometry(settings.kvPageTokens, plan, actual);
  const arenaTokens = (kv.arenas[0]?.pages ?? 0) * kv.pageTokens;
  return {
    maxSequences: plan.maxSequences,
    maxBatchTokens: Math.min(settings.maxBatchTokens, actual.batchTokens),
    maxQueuedRequests: settings.maxQueuedRequests,
    maxQueuedTokens: settings.maxQueuedTokens === "auto" ? queuedCaches * actual.contextTokens : settings.maxQueuedTokens,
    contextTokens: Math.min(contextOf(actual), arenaTokens),
    sharePrefixes: settings.sharePrefixes,
    kv,
  };
}

function kvGeometry(pageTokens: number, { kvLayout, slots }: EnginePlan, { contextTokens, streamTokens, canTrim }: ActualContext): KvGeometry {
  const arenaTokens = kvLayout === "streams" ? streamTokens : contextTokens;
  const pages = Math.floor(arenaTokens / pageTokens);
  if (pages === 0) throw settingDoesNotFit({ message: `kv.pageTokens is ${pageTokens}, but an arena of the KV cache has only ${arenaTokens} tokens.` });
  const ids = Array.from({ length: slots }, (_, slot) => slot);
  return { pageTokens, canTrim, arenas: kvLayout === "streams" ? ids.map((slot) => ({ pages, slots: [slot] })) : [{ pages, slots: ids }] };
}
