/** An engine that the conformance suite can run on. */

import type { Executor } from "../../src/engine/executor/executor.js";
import type { KvGeometry } from "../../src/kv-cache/geometry.js";

export interface EngineShape {
  readonly layout: "streams" | "unified";
  readonly slots: number;
  /** Tokens of the whole cache. */
  readonly kvTokens: number;
  readonly pageTokens: number;
  readonly maxBatchTokens: number;
}

export interface OpenEngine {
  readonly executor: Executor;
  /** What the engine really made of the shape; a suite may use fewer pages of it. */
  readonly kv: KvGeometry;
  close(): Promise<void>;
}

export interface ConformanceTarget {
  open(shape: EngineShape): Promise<OpenEngine>;
  /** Prompts whose greedy answers do not hang on rounding: the likeliest token leads clearly at every step. */
  readonly prompts: readonly (readonly number[])[];
  /** Several prompts that begin with the same long text. */
  readonly sharedPrompts: readonly (readonly number[])[];
  close(): Promise<void>;
}

export function geometryOf(shape: EngineShape, canTrim: boolean, tokensOfArena: number): KvGeometry {
  const { layout, pageTokens, slots: count } = shape;
  const pages = Math.floor(tokensOfArena / pageTokens);
  const slots = Array.from({ length: count }, (_, slot) => slot);
  return { pageTokens, canTrim, arenas: layout === "unified" ? [{ pages, slots }] : slots.map((slot) => ({ pages, slots: [slot] })) };
}
