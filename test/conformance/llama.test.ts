/**
 * Greedy answers of the built-in model. A batch of another shape rounds differently, so the prompts are ones that the model was trained to answer
 * in one way: the likeliest token leads clearly at every step.
 */
import { fileURLToPath } from "node:url";
import { createLlamaExecutor } from "../../src/engine/executor/llama-executor.js";
import { createContext, loadModel, openLlama, tokenize } from "../../src/engine/llama/index.js";
import { conformanceSuite } from "./suite.js";
import { geometryOf } from "./target.js";

const modelPath = fileURLToPath(new URL("../../models/pagoda-tiny/pagoda-tiny.gguf", import.meta.url));

const questions = ["What is 7 + 5?", "What is the capital of France?", "What sound does a cow make?", "Count from 3 to 9."];
const history =
  "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n<|im_start|>assistant\n2 + 2 = 4.<|im_end|>\n<|im_start|>user\nWhat is the capital of Italy?<|im_end|>\n<|im_start|>assistant\nThe capital of Italy is Rome.<|im_end|>\n";
const ask = (question: string) => `<|im_start|>user\n${question}<|im_end|>\n<|im_start|>assistant\n`;

conformanceSuite("llama.cpp", async () => {
  const llama = await openLlama({ backend: "cpu", libraries: "bundled", log: () => {} });
  const model = await loadModel(llama, { path: modelPath, gpuLayers: 0 });
  const texts = [...questions.map(ask), ...questions.map((question) => history + ask(question))];
  const tokens = await tokenize(
    model,
    texts.map((text) => ({ text, parseSpecial: true })),
    { addSpecial: false },
  );
  return {
    prompts: tokens.slice(0, questions.length),
    sharedPrompts: tokens.slice(questions.length),
    async open(shape) {
      const { layout, kvTokens, slots, maxBatchTokens } = shape;
      const context = await createContext(model, {
        layout,
        kvTokens,
        maxSequences: slots,
        batchTokens: maxBatchTokens,
        kvType: "f16",
        threads: 1,
        flashAttention: "auto",
      });
      const executor = createLlamaExecutor({ context });
      return {
        executor,
        kv: geometryOf(shape, model.canTrim, context.sequenceTokens),
        async close() {
          executor.close();
          await context.close();
        },
      };
    },
    async close() {
      await model.close();
      await llama.close();
    },
  };
});
