/** The command line of `npm run make:model`. */
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "../llama-source.js";
import { tensorTypes } from "./gguf-format.js";
import { type MatrixType, type RandomModel, writeRandomModel } from "./random-model.js";
import { type ModelShape, presets, shapeProblem } from "./shapes.js";
import { readVocabulary, vocabularyNames } from "./vocabularies.js";

const usage = `Writes a GGUF model of any shape with random weights and a real vocabulary, for load tests. It loads and runs like a trained model of its size; what it says is noise.

Usage: npm run make:model -- [options]

Shape:
  --shape NAME         ${Object.keys(presets).join(", ")} (default 135m); --list tells what they are like
  --layers N           each of these changes one number of the shape
  --width N            length of a token's vector
  --heads N            attention heads
  --kv-heads N         heads of keys and values
  --ffn N              width of the feed-forward part
  --context N          trained context, in tokens, as the file claims

Content:
  --vocab NAME         vocabulary out of llama.cpp's tree (default qwen2); --list names all
  --type TYPE          q8_0 or f16: the type of the matrices (default q8_0); norms are always f32
  --seed N             whole number; the same seed and options give the same file, byte for byte (default 1)
  --tie-embeddings     one matrix for embedding and output (the default)
  --no-tie-embeddings  two matrices

Output:
  --out FILE           where to write it (default models/random/SHAPE-VOCAB-TYPE-SEED.gguf)
  --name TEXT          name in the file's metadata (default: the file's)
  --list               print shapes and vocabularies, write nothing
  --help               this text

Exit codes: 0 written, 1 failed, 2 wrong usage.`;

const options = {
  shape: { type: "string", default: "135m" },
  layers: { type: "string" },
  width: { type: "string" },
  heads: { type: "string" },
  "kv-heads": { type: "string" },
  ffn: { type: "string" },
  context: { type: "string" },
  vocab: { type: "string", default: "qwen2" },
  type: { type: "string", default: "q8_0" },
  seed: { type: "string", default: "1" },
  "tie-embeddings": { type: "boolean", default: true },
  out: { type: "string" },
  name: { type: "string" },
  list: { type: "boolean" },
  help: { type: "boolean", short: "h" },
} as const;

type Values = ReturnType<typeof parseOptions>;

interface Order {
  readonly path: string;
  readonly model: RandomModel;
}

function parseOptions(parameters: readonly string[]) {
  return parseArgs({ args: [...parameters], options, allowNegative: true }).values;
}

/** Throws on anything that the usage text does not allow. */
function orderOf(values: Values): Order {
  const shape = shapeOf(values);
  const type = matrixType(values.type);
  const problem = shapeProblem(shape, tensorTypes[type].blockWeights);
  if (problem !== undefined) throw new Error(problem);
  const seed = wholeNumber("--seed", values.seed, 0);
  const fileName = `${shapeName(values)}-${values.vocab}-${type}-${seed}`;
  const path = values.out === undefined ? join(repositoryRoot, "models", "random", `${fileName}.gguf`) : resolve(values.out);
  const model: RandomModel = {
    name: values.name ?? fileName,
    shape,
    vocabulary: readVocabulary(values.vocab),
    type,
    seed,
    tieEmbeddings: values["tie-embeddings"],
  };
  return { path, model };
}

function shapeOf(values: Values): ModelShape {
  const preset = Object.hasOwn(presets, values.shape) ? presets[values.shape] : undefined;
  if (preset === undefined) throw new Error(`unknown shape '${values.shape}'; known are ${Object.keys(presets).join(", ")}.`);
  const chosen = (option: "layers" | "width" | "heads" | "kv-heads" | "ffn" | "context", otherwise: number): number => {
    const text = values[option];
    return text === undefined ? otherwise : wholeNumber(`--${option}`, text, 1);
  };
  return {
    layers: chosen("layers", preset.layers),
    width: chosen("width", preset.width),
    heads: chosen("heads", preset.heads),
    kvHeads: chosen("kv-heads", preset.kvHeads),
    feedForward: chosen("ffn", preset.feedForward),
    contextTokens: chosen("context", preset.contextTokens),
  };
}

/** The preset's name, unless numbers of it were changed. */
function shapeName(values: Values): string {
  const changed = [values.layers, values.width, values.heads, values["kv-heads"], values.ffn, values.context].some((value) => value !== undefined);
  return changed ? "custom" : values.shape;
}

function matrixType(text: string): MatrixType {
  if (text === "q8_0" || text === "f16") return text;
  throw new Error(`--type is q8_0 or f16, not '${text}'.`);
}

function wholeNumber(option: string, text: string, least: number): number {
  const value = Number(text);
  if (!/^\d+$/.test(text) || !Number.isSafeInteger(value) || value < least) throw new Error(`${option} takes a whole number from ${least} up, not '${text}'.`);
  return value;
}

function list(): string {
  const shapes = Object.entries(presets).map(
    ([name, s]) =>
      `  ${name.padEnd(8)}${s.layers} layers, width ${s.width}, ${s.heads} heads, ${s.kvHeads} KV heads, feed-forward ${s.feedForward}, context ${s.contextTokens}: like ${s.like}`,
  );
  const vocabularies = vocabularyNames().map((name) => {
    const vocabulary = readVocabulary(name);
    return `  ${name.padEnd(18)}${String(vocabulary.tokens).padStart(7)} tokens, ${vocabulary.kind}`;
  });
  return ["Shapes:", ...shapes, "", "Vocabularies:", ...vocabularies].join("\n");
}

function write({ path, model }: Order): void {
  const began = performance.now();
  const { bytes, parameters } = writeRandomModel(path, model);
  const seconds = (performance.now() - began) / 1000;
  console.log(`${path}: ${(parameters / 1e6).toFixed(1)}M weights, ${(bytes / 1e6).toFixed(1)} MB, ${seconds.toFixed(1)} s`);
}

/** Runs the command line. Returns the exit code. */
function main(parameters: readonly string[]): number {
  let order: Order;
  try {
    const values = parseOptions(parameters);
    if (values.help || values.list) {
      console.log(values.help ? usage : list());
      return 0;
    }
    order = orderOf(values);
  } catch (error) {
    console.error(`make:model: ${(error as Error).message}\nTry --help.`);
    return 2;
  }
  try {
    write(order);
    return 0;
  } catch (error) {
    console.error(`make:model: ${(error as Error).message}`);
    return 1;
  }
}

process.exitCode = main(process.argv.slice(2));
