/** Compares token ids and greedy text with llama.cpp's own programs, for any GGUFs. */
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { parseArgs } from "node:util";
import { createEngineClient, type LocalEngineClient } from "../src/engine/client/index.js";
import type { EngineSettings } from "../src/engine/protocol.js";
import { createOutputText, createVocabulary, type Vocabulary } from "../src/tokenizer/index.js";
import { buildLlamaTools, llamaToolPath } from "./bench/llama-tools.js";

const help = `Compares token ids and greedy text with llama.cpp's own llama-tokenize and llama-completion, which it builds when they are missing.

Usage: npm run compare:llama -- MODEL.gguf...

Exit codes: 0 everything is equal, 1 something differs, 2 wrong usage.`;

const texts = [
  "Once upon a time, there was a little girl named Lily.",
  "  Two spaces, a tab\t, a line\nand\r\n\r\nsome more   ",
  "I'll say 'tis 3.14159 or 1,000,000 — isn't it? (yes/no) [x] {y} #1 @you",
  "Crème brûlée, naïve façade, Ærøskøbing, Straße, ŁÓDŹ",
  "日本語のテキストと中文文本和 한국어 텍스트",
  "emoji 🎉👩‍👩‍👧 and flags 🇫🇷, a\u0301 combining, \u200bzero width",
  "for (let i = 0; i < 10; i++) { console.log(i + ': ' + (x[i] ?? 'none')); }",
  "Русский текст, ελληνικά, עברית, العربية, हिन्दी",
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
];
const prompts = ["Once upon a time", "The capital of France is", "def fibonacci(n):\n"];
const answerTokens = 40;

const settings: Omit<EngineSettings, "modelPath"> = {
  backend: "cpu",
  libraries: "bundled",
  threads: 1,
  gpuLayers: 0,
  flashAttention: "auto",
  kvLayout: "unified",
  kvTokens: 1024,
  kvPageTokens: 32,
  kvType: "f16",
  maxSequences: 4,
  maxBatchTokens: 512,
  maxQueuedRequests: 16,
  maxQueuedTokens: "auto",
  sharePrefixes: false,
};

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: { help: { type: "boolean", default: false } } });
  if (values.help || positionals.length === 0) {
    console.log(help);
    return values.help ? 0 : 2;
  }
  const missing = (["llama-tokenize", "llama-completion"] as const).filter((tool) => !existsSync(llamaToolPath(tool)));
  if (missing.length > 0) buildLlamaTools(missing, 2);
  let differences = 0;
  for (const model of positionals) differences += await compareModel(model);
  return differences === 0 ? 0 : 1;
}

async function compareModel(modelPath: string): Promise<number> {
  const log = { debug() {}, info() {}, warn: console.warn, error: console.error };
  const client = createEngineClient({ modelName: modelPath, settings: { ...settings, modelPath }, replicas: 1, engineWaitMs: 60_000, log });
  try {
    const { model } = await client.ready();
    const vocabulary = createVocabulary(model.tokens);
    const ids = await differingIds(client, modelPath);
    const answers = await differingAnswers(client, modelPath, vocabulary);
    console.log(
      `${modelPath} (${model.tokens.type}, ${model.vocabularySize} tokens): ids of ${texts.length - ids} of ${texts.length} texts and ${prompts.length - answers} of ${prompts.length} greedy answers are equal`,
    );
    return ids + answers;
  } finally {
    await client.close(0);
  }
}

async function differingIds(client: LocalEngineClient, modelPath: string): Promise<number> {
  let differing = 0;
  for (const text of texts) {
    const [own = []] = await client.tokenize([{ text, parseSpecial: true }], { addSpecial: true });
    const theirs = runTool("llama-tokenize", ["-m", modelPath, "--ids", "--log-disable", "--stdin"], text).trim();
    if (JSON.stringify(own) === theirs.replaceAll(" ", "")) continue;
    differing++;
    console.log(`  ${JSON.stringify(text)}\n    pagoda    ${JSON.stringify(own)}\n    llama.cpp ${theirs}`);
  }
  return differing;
}

async function differingAnswers(client: LocalEngineClient, modelPath: string, vocabulary: Vocabulary): Promise<number> {
  let differing = 0;
  for (const prompt of prompts) {
    const own = await greedyText(client, vocabulary, prompt);
    const theirs = runTool(
      "llama-completion",
      ["-m", modelPath, "-p", prompt, "-n", String(answerTokens), "--temp", "0", "-t", "1", "-c", "1024", "-no-cnv", "--no-display-prompt", "--no-warmup"],
      "",
    ).replace(/ ?\[end of text\]\s*$/, "");
    // The program ends its output with line breaks of its own.
    if (own.trimEnd() === theirs.trimEnd()) continue;
    differing++;
    console.log(`  ${JSON.stringify(prompt)}\n    pagoda    ${JSON.stringify(own)}\n    llama.cpp ${JSON.stringify(theirs)}`);
  }
  return differing;
}

async function greedyText(client: LocalEngineClient, vocabulary: Vocabulary, prompt: string): Promise<string> {
  const [promptTokens = []] = await client.tokenize([{ text: prompt, parseSpecial: true }], { addSpecial: true });
  const choices = [{ index: 0, seed: 0, outputTokens: [] }];
  const generation = await client.submit({
    id: prompt,
    promptTokens,
    choices,
    maxTokens: answerTokens,
    sampling: { temperature: 0 },
    ignoreEndOfGeneration: false,
    salt: "",
  });
  const output = createOutputText({ vocabulary });
  let text = "";
  for await (const event of generation.events) {
    if (event.error !== undefined) throw new Error(event.error.message);
    if (event.token !== undefined) text += output.push(event.token).text;
  }
  return text + output.finish().text;
}

function runTool(tool: "llama-tokenize" | "llama-completion", parameters: readonly string[], input: string): string {
  const result = spawnSync(llamaToolPath(tool), parameters, { encoding: "utf8", input, maxBuffer: 2 ** 24 });
  // Some vocabularies end llama.cpp's programs with an assertion: that is a difference to be shown, not the end of the comparison.
  return result.status === 0 ? result.stdout : `(${tool} failed: ${result.stderr.trim().split("\n").at(-1)})`;
}

process.exitCode = await main();
