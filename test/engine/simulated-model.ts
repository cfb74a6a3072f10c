/** What the simulated engine process and the tests that watch it must agree on. */
import { type SimulatedModel, simulatedSoloRun } from "../../src/engine/simulated/simulated-executor.js";

export const simulatedModel: SimulatedModel = { vocabularySize: 5000, endOneIn: 0 };

export const simulatedContextTokens = 4096;

/** A text that ends the engine which tokenizes it. */
export const poisonText = "poison";

export function soloRun(promptTokens: readonly number[], maxTokens: number): number[] {
  return simulatedSoloRun(promptTokens, maxTokens, simulatedContextTokens, simulatedModel);
}
