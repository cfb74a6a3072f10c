import { createSimulatedExecutor } from "../../src/engine/simulated/simulated-executor.js";
import { conformanceSuite } from "./suite.js";
import { geometryOf } from "./target.js";

const model = { vocabularySize: 50, endOneIn: 40 };
const prompt = (length: number, first: number) => Array.from({ length }, (_, position) => 1 + ((first + position * 7) % 49));
const prefix = prompt(60, 3);

conformanceSuite("simulated", async () => ({
  prompts: [prompt(9, 1), prompt(14, 20), prompt(21, 5), prompt(12, 33)],
  sharedPrompts: [1, 2, 3, 4].map((ending) => [...prefix, ...prompt(6, ending * 11)]),
  async open(shape) {
    const kv = geometryOf(shape, true, shape.layout === "unified" ? shape.kvTokens : Math.floor(shape.kvTokens / shape.slots));
    return { executor: createSimulatedExecutor({ kv, model }), kv, close: async () => {} };
  },
  close: async () => {},
}));
