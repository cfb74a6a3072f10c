import { expect, test } from "vitest";
import { modelNameOf } from "./model-name.js";

test.each([
  ["builtin:pagoda-tiny", "pagoda-tiny"],
  ["./models/Qwen3-0.6B-Q8_0.gguf", "Qwen3-0.6B-Q8_0"],
  ["C:\\models\\chat.GGUF", "chat"],
  ["/m/big-00001-of-00003.gguf", "big"],
  ["my model.gguf", "my-model"],
  [".gguf", ".gguf"],
])("%s is called %s", (source, name) => expect(modelNameOf(source)).toBe(name));
