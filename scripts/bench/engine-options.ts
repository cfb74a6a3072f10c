/** The options of `npm run bench:engine`. */
import { availableParallelism } from "node:os";
import { dirname, join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../llama-source.js";
import { type EngineJob, neededContextTokens } from "./engine-job.js";
import { llamaToolPath } from "./llama-tools.js";

export const defaultModelPath = join(repositoryRoot, "models", "random", "135m-qwen2-q8_0-1.gguf");

export const engineBenchUsage = `Compares Pagoda's engine (scheduler, executor and step loop, without HTTP) with llama.cpp's own llama-batched-bench, in alternating rounds on the same model and settings,
and measures the memory of a whole 'pagoda serve'.

Usage: npm run bench:engine -- [options]

Options:
  --model FILE            a GGUF (default models/random/135m-qwen2-q8_0-1.gguf, made when it is missing)
  --sequences N,N         how many at the same time (default 1,16)
  --prompt N              prompt tokens of each sequence (default 128)
  --output N              measured tokens of each sequence (default 64)
  --batch N               tokens of one llama_decode call at most (default 512)
  --threads N             compute threads on either side (default: the cores of this machine)
  --kv-layout LAYOUT      streams or unified (default streams)
  --flash-attention on|off   (default on)
  --libraries DIR         Pagoda computes with this build of llama.cpp; "built" is the peer's own (default: the bundled one)
  --rounds N              rounds of each side (default 5)
  --no-peer               Pagoda's engine alone
  --no-memory             do not start 'pagoda serve'
  --json FILE             also write all figures there
  --help                  this text

Build the peer first: npm run build:llama-tools. Figures mean something only while nothing else runs on the machine.
Exit codes: 0 measured, 1 failed, 2 wrong usage.`;

export interface EngineBenchOptions {
  readonly job: EngineJob;
  readonly rounds: number;
  readonly withPeer: boolean;
  readonly withMemory: boolean;
  readonly jsonPath: string | undefined;
}

const options = {
  model: { type: "string", default: defaultModelPath },
  sequences: { type: "string", default: "1,16" },
  prompt: { type: "string", default: "128" },
  output: { type: "string", default: "64" },
  batch: { type: "string", default: "512" },
  threads: { type: "string", default: String(availableParallelism()) },
  "kv-layout": { type: "string", default: "streams" },
  "flash-attention": { type: "string", default: "on" },
  libraries: { type: "string", default: "bundled" },
  rounds: { type: "string", default: "5" },
  peer: { type: "boolean", default: true },
  memory: { type: "boolean", default: true },
  json: { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

/** What the command line asks for; undefined for the help text. Throws on wrong usage. */
export function parseEngineBenchOptions(parameters: readonly string[]): EngineBenchOptions | undefined {
  const { values } = parseArgs({ args: [...parameters], options, allowNegative: true });
  if (values.help) return undefined;
  const shape = {
    sequenceCounts: values.sequences.split(",").map((text) => wholeNumber("--sequences", text)),
    promptTokens: wholeNumber("--prompt", values.prompt),
    outputTokens: wholeNumber("--output", values.output),
    batchTokens: wholeNumber("--batch", values.batch),
  };
  if (Math.max(...shape.sequenceCounts) > shape.batchTokens) throw new Error("--batch must have room for a token of every sequence.");
  const job: EngineJob = {
    ...shape,
    modelPath: resolve(values.model),
    threads: wholeNumber("--threads", values.threads),
    contextTokens: neededContextTokens(shape),
    kvLayout: oneOf("--kv-layout", values["kv-layout"], ["streams", "unified"]),
    flashAttention: oneOf("--flash-attention", values["flash-attention"], ["on", "off"]) === "on",
    libraries: librariesOf(values.libraries),
  };
  return {
    job,
    rounds: wholeNumber("--rounds", values.rounds),
    withPeer: values.peer,
    withMemory: values.memory,
    jsonPath: values.json === undefined ? undefined : resolve(values.json),
  };
}

function librariesOf(text: string): string {
  if (text === "bundled") return text;
  return text === "built" ? dirname(llamaToolPath("llama-batched-bench")) : resolve(text);
}

function wholeNumber(option: string, text: string): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || value < 1) throw new Error(`${option} takes whole numbers from 1 up, not '${text}'.`);
  return value;
}

function oneOf<Value extends string>(option: string, text: string, allowed: readonly Value[]): Value {
  const value = allowed.find((candidate) => candidate === text);
  if (value === undefined) throw new Error(`${option} is ${allowed.join(" or ")}, not '${text}'.`);
  return value;
}
