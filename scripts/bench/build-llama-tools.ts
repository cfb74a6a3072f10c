/** The command line of `npm run build:llama-tools`. */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { buildLlamaTools, type LlamaTool, llamaTools } from "./llama-tools.js";

const usage = `Builds llama.cpp's own programs from the bundle inside node-llama-cpp (no network), at low priority.

Usage: npm run build:llama-tools -- [--jobs N] [TOOL...]

Tools:
${Object.entries(llamaTools)
  .map(([name, reason]) => `  ${name.padEnd(22)}${reason}`)
  .join("\n")}

Options:
  --jobs N   compiler processes at the same time (default: the cores of this machine)
  --help     this text

Sources are kept in .cache/llama.cpp, programs in .cache/llama-build/RELEASE/bin. Needs git, cmake 3.14 or later and a C++17 compiler.`;

interface Order {
  readonly tools: readonly LlamaTool[];
  readonly jobs: number;
}

/** What the command line asks for; undefined for the help text. Throws on wrong usage. */
function parseOrder(parameters: readonly string[]): Order | undefined {
  const { values, positionals } = parseArgs({
    args: [...parameters],
    allowPositionals: true,
    options: { jobs: { type: "string" }, help: { type: "boolean", short: "h" } },
  });
  if (values.help) return undefined;
  return {
    tools: positionals.length === 0 ? ["llama-batched-bench"] : positionals.map(toolNamed),
    jobs: values.jobs === undefined ? availableParallelism() : jobCount(values.jobs),
  };
}

function toolNamed(name: string): LlamaTool {
  if (Object.hasOwn(llamaTools, name)) return name as LlamaTool;
  throw new Error(`unknown tool '${name}'; known are ${Object.keys(llamaTools).join(", ")}.`);
}

function jobCount(text: string): number {
  const count = Number(text);
  if (!Number.isInteger(count) || count < 1) throw new Error(`--jobs takes a whole number from 1 up, not '${text}'.`);
  return count;
}

/** Runs the command line. Returns the exit code: 0 built, 1 the build failed, 2 wrong usage. */
function main(parameters: readonly string[]): number {
  let order: Order | undefined;
  try {
    order = parseOrder(parameters);
  } catch (error) {
    console.error(`build:llama-tools: ${(error as Error).message}\nTry --help.`);
    return 2;
  }
  if (order === undefined) {
    console.log(usage);
    return 0;
  }
  try {
    for (const path of buildLlamaTools(order.tools, order.jobs)) console.log(path);
    return 0;
  } catch (error) {
    console.error(`build:llama-tools: ${(error as Error).message}`);
    return 1;
  }
}

process.exitCode = main(process.argv.slice(2));
