import { expect, test } from "vitest";
import { samplingFields } from "../gateway/openai/sampling-schema.js";
import { findKey } from "./key-tree.js";

const edges = [-2.1, -2, -1.5, -1, -0.5, 0, 0.005, 0.01, 0.5, 1, 1.1, 2, 2.1, 100, 101, 2 ** 31 - 1, 2 ** 31];

test.each([
  ["temperature", "temperature"],
  ["topP", "top_p"],
  ["topK", "top_k"],
  ["minP", "min_p"],
  ["typicalP", "typical_p"],
  ["repeatPenalty", "repeat_penalty"],
  ["repeatLastN", "repeat_last_n"],
  ["frequencyPenalty", "frequency_penalty"],
  ["presencePenalty", "presence_penalty"],
] as const)("sampling.%s takes the values that a request's %s takes", (name, field) => {
  const found = findKey(["sampling", name]);
  if (found.kind !== "key") throw new Error(`sampling.${name} is no key.`);
  const { schema } = found.key;
  expect(edges.filter((value) => schema.safeParse(value).success)).toEqual(edges.filter((value) => samplingFields[field].safeParse(value).success));
});
