import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { configReference } from "./index.js";
import { allKeys, joinPath } from "./key-tree.js";

test("docs/configuration.md is what the schema says (npm run docs:configuration)", () => {
  expect(readFileSync(new URL("../../docs/configuration.md", import.meta.url), "utf8")).toBe(configReference());
});

test("every key is in the reference once, those of models' own sections by their section", () => {
  const page = configReference();
  for (const key of allKeys()) {
    const isOverride = key.path[0] === "models" && key.path.length > 3;
    expect(page.split(`| \`${joinPath(key.path)}\` |`)).toHaveLength(isOverride ? 1 : 2);
  }
});
