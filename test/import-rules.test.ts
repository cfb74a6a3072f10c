import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { cruise, type ICruiseOptions, type ICruiseResult, type IFlattenedRuleSet } from "dependency-cruiser";
import { afterAll, describe, expect, test } from "vitest";

const root = fileURLToPath(new URL("..", import.meta.url));
const rules = createRequire(import.meta.url)("../.dependency-cruiser.cjs") as IFlattenedRuleSet & { readonly options: ICruiseOptions };
const workspaces: string[] = [];

/** Names of the rules that a source tree of these files breaks. */
async function broken(files: Readonly<Record<string, string>>): Promise<readonly string[]> {
  const workspace = mkdtempSync(join(tmpdir(), "import-rules-"));
  workspaces.push(workspace);
  symlinkSync(join(root, "node_modules"), join(workspace, "node_modules"));
  symlinkSync(join(root, "package.json"), join(workspace, "package.json"));
  const all = { "src/errors.ts": "export const code = 1;", ...files };
  for (const [name, text] of Object.entries(all)) {
    mkdirSync(dirname(join(workspace, name)), { recursive: true });
    writeFileSync(join(workspace, name), text);
  }
  const { tsConfig: _, ...options } = rules.options;
  const { output } = await cruise(["src"], { ...options, ruleSet: { forbidden: rules.forbidden ?? [] }, validate: true, baseDir: workspace });
  return [...new Set((output as ICruiseResult).summary.violations.map((violation) => violation.rule.name))].sort();
}

afterAll(() => {
  for (const workspace of workspaces) rmSync(workspace, { recursive: true, force: true });
});

const step = { "src/scheduler/step.ts": "export interface Step { readonly size: number }" };

describe("the import rules", () => {
  test("let pass what the table allows, and errors.ts everywhere", async () => {
    const executor =
      'import type { Step } from "../scheduler/step.js";\nimport { code } from "../errors.js";\nexport const run = (step: Step) => step.size + code;';
    expect(await broken({ ...step, "src/engine/executor.ts": executor })).toEqual([]);
  });

  test.each<[string, Record<string, string>, string[]]>([
    [
      "a type from a folder above",
      { "src/kv-cache/pool.ts": 'import type { Step } from "../scheduler/step.js";\nexport type Pool = Step;', ...step },
      ["kv-cache-imports"],
    ],
    [
      "a part of the engine that is not its client",
      { "src/gateway/chat.ts": 'import { x } from "../engine/protocol.js";\nexport const y = x;', "src/engine/protocol.ts": "export const x = 1;" },
      ["gateway-imports"],
    ],
    [
      "a cycle of types",
      {
        "src/config/a.ts": 'import type { B } from "./b.js";\nexport interface A { readonly b?: B }',
        "src/config/b.ts": 'import type { A } from "./a.js";\nexport interface B { readonly a?: A }',
      },
      ["no-cycles"],
    ],
    [
      "a clock or a file in the scheduler",
      { "src/scheduler/plan.ts": 'import { readFileSync } from "node:fs";\nexport const f = readFileSync;' },
      ["pure-policy"],
    ],
    [
      "native code in the gateway, even by way of others",
      {
        "src/gateway/chat.ts": 'import { client } from "../engine/client/client.js";\nexport const c = client;',
        "src/engine/client/client.ts": 'import { native } from "../llama/native.js";\nexport const client = native;',
        "src/engine/llama/native.ts": 'import koffi from "koffi";\nexport const native = koffi;',
      },
      ["no-way-from-the-gateway-to-native-code"],
    ],
    ["a development dependency in the product", { "src/config/a.ts": 'import fc from "fast-check";\nexport const f = fc;' }, ["no-development-dependencies"]],
    ["a folder that is not in the table", { "src/other/a.ts": 'import { code } from "../errors.js";\nexport const c = code;' }, ["known-folders"]],
    ["a file that does not exist", { "src/config/a.ts": 'import { b } from "./b.js";\nexport const a = b;' }, ["resolvable"]],
  ])("refuse %s", async (_, files, expected) => {
    expect(await broken(files)).toEqual(expected);
  });
});
