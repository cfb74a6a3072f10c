import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { PagodaError } from "../errors.js";
import { variableName } from "./environment-source.js";
import { formatConfig, loadConfig } from "./index.js";
import { allKeys, findKey, joinPath, splitPath } from "./key-tree.js";
import type { ConfigSources } from "./load.js";

/** Two values that are allowed, neither of them the default, for every key. */
const samples: Readonly<Record<string, readonly [string, string]>> = {
  "server.host": ["0.0.0.0", "::1"],
  "server.port": ["9000", "0"],
  "server.bodyLimit": ["1MiB", "4096"],
  "server.requestTimeout": ["5m", "1h"],
  "server.shutdownGrace": ["0s", "250ms"],
  "server.engineWait": ["1s", "2s"],
  "server.streamBuffer": ["64KiB", "2MB"],
  "server.slowReaderTimeout": ["10s", "20s"],
  "server.pingInterval": ["1s", "2s"],
  "engine.backend": ["vulkan", "cuda"],
  "engine.libraries": ["/opt/llama", "8"],
  "engine.threads": ["4", "1"],
  "engine.gpuLayers": ["0", "99"],
  "engine.flashAttention": ["on", "off"],
  "engine.replicas": ["2", "64"],
  "scheduler.maxSequences": ["8", "256"],
  "scheduler.maxBatchTokens": ["1024", "2048"],
  "scheduler.maxQueuedRequests": ["0", "7"],
  "scheduler.maxQueuedTokens": ["0", "5000"],
  "scheduler.sharePrefixes": ["off", "false"],
  "kv.layout": ["streams", "unified"],
  "kv.tokens": ["65536", "131072"],
  "kv.pageTokens": ["16", "64"],
  "kv.type": ["q8_0", "q4_0"],
  "sampling.profile": ["llama", "llama"],
  "sampling.temperature": ["0", "0.7"],
  "sampling.topP": ["0.9", "0"],
  "sampling.topK": ["40", "1"],
  "sampling.minP": ["0.05", "1"],
  "sampling.typicalP": ["0.9", "0.1"],
  "sampling.repeatPenalty": ["1.1", "2"],
  "sampling.repeatLastN": ["-1", "0"],
  "sampling.frequencyPenalty": ["-2", "2"],
  "sampling.presencePenalty": ["0.5", "-0.5"],
  "sampling.maxTokens": ["100", "1"],
  "sampling.seed": ["0", "4294967295"],
  "models.*.name": ["chat", "7"],
  "models.*.source": ["./some.gguf", "C:\\models\\a.gguf"],
  "models.*.aliases": ["[a, b]", "[c]"],
  "models.*.chatTemplate": ["chatml", "./template.jinja"],
  "observability.metrics": ["off", "false"],
  "observability.logs.level": ["debug", "silent"],
  "observability.logs.format": ["json", "pretty"],
};
const sampledKeys = Object.entries(samples).map(([key, [first, second]]) => ({ key: key.replace("*", "0"), first, second }));
const overrideKeys = sampledKeys.filter(({ key }) => /^(engine|scheduler|kv)\./.test(key)).map((sample) => ({ ...sample, key: `models.0.${sample.key}` }));
const samplesOfEveryKey = [...sampledKeys, ...overrideKeys];

function problemsOf(sources: ConfigSources): string {
  try {
    loadConfig(sources);
  } catch (error) {
    if (error instanceof PagodaError && error.code === "config_invalid") return error.message;
    throw error;
  }
  return "";
}

/** A file that sets one key, as YAML in block style. */
function fileWith(key: string, value: string): string {
  const parts = key.split(".");
  const isText = isTextKey(key);
  const lines = parts.map((part, depth) => `${"  ".repeat(depth)}${part === "0" ? "-" : `${part}:`}`);
  return `${lines.join("\n")} ${isText ? JSON.stringify(value) : value}\n`;
}

function isTextKey(key: string): boolean {
  const found = findKey(splitPath(key));
  return found.kind === "key" && found.key.isText;
}

/** A model needs a source before anything else can be said of it. */
function withSource(key: string, text: string): string {
  return key.startsWith("models.0.") && key !== "models.0.source" ? text.replace("-\n", "-\n    source: builtin:pagoda-tiny\n") : text;
}

describe("every key", () => {
  test("has samples here, so that no law below is vacuous", () => {
    expect(new Set(samplesOfEveryKey.map(({ key }) => key.replace(".0.", ".*.")))).toEqual(new Set(allKeys().map((key) => joinPath(key.path))));
  });

  test.each(samplesOfEveryKey)("$key means the same in a file, in the environment and after --set", ({ key, first }) => {
    const path = splitPath(key).map(String);
    const expected = loadConfig({ sets: [`${key}=${first}`] });
    expect(expected).not.toEqual(loadConfig());
    expect(loadConfig({ environment: { [variableName(path)]: first } })).toEqual(expected);
    expect(loadConfig({ environment: { [`PAGODA_${path.join("_").toUpperCase()}`]: first } })).toEqual(expected);
    expect(loadConfig({ fileText: withSource(key, fileWith(key, first)) })).toEqual(expected);
  });

  test.each(samplesOfEveryKey)("$key is taken from the strongest of the places that set it", ({ key, first, second }) => {
    const file = { fileText: withSource(key, fileWith(key, first)) };
    const environment = { environment: { [variableName(splitPath(key).map(String))]: second } };
    const wanted = loadConfig({ sets: [`${key}=${second}`] });
    expect(loadConfig({ ...file, ...environment })).toEqual(wanted);
    expect(loadConfig({ ...environment, sets: [`${key}=${first}`] })).toEqual(loadConfig({ sets: [`${key}=${first}`] }));
    expect(loadConfig({ ...file, sets: [`${key}=${first}`, `${key}=${second}`] })).toEqual(wanted);
  });

  test("has environment variables that no other key has", () => {
    const names = allKeys().flatMap((key) => [...new Set([variableName(key.path), `PAGODA_${key.path.join("_").toUpperCase()}`])]);
    expect(new Set(names).size).toBe(names.length);
  });

  test.prop([fc.subarray(samplesOfEveryKey), fc.boolean()], { numRuns: 40 })("is written by print so that it is read back", (chosen, useSecond) => {
    const sets = chosen.map(({ key, first, second }) => `${key}=${useSecond ? second : first}`);
    fc.pre(problemsOf({ sets }) === "");
    const config = loadConfig({ sets });
    expect(loadConfig({ fileText: formatConfig(config) })).toEqual(config);
  });

  test.prop([fc.constantFrom(...sampledKeys), fc.nat()])("is named when it is mistyped by one letter", ({ key, first }, seed) => {
    const at = key.lastIndexOf(".") + 1 + (seed % (key.length - key.lastIndexOf(".") - 1));
    const mistyped = `${key.slice(0, at)}${key.slice(at + 1)}`;
    const found = findKey(splitPath(mistyped));
    fc.pre(found.kind === "unknown" && !mistyped.endsWith("."));
    expect(problemsOf({ sets: [`${mistyped}=${first}`] })).toMatch(new RegExp(`^${mistyped}: unknown key \\(--set .*\\. Did you mean \\S+\\?`));
  });
});

describe("flags", () => {
  test("are short for one key each, and stronger than --set", () => {
    const flags = { model: "./some.gguf", alias: ["a", "b"], chatTemplate: "chatml", host: "::", port: "9" };
    const sets = ["models.0.source=./some.gguf", "models.0.aliases=[a, b]", "models.0.chatTemplate=chatml", "server.host='::'", "server.port=9"];
    expect(loadConfig({ flags })).toEqual(loadConfig({ sets: sets.map((set) => set.replaceAll("'", "")) }));
    expect(loadConfig({ flags: { port: "9" }, sets: ["server.port=10"] }).server.port).toBe(9);
  });

  test("--model replaces the list of models", () => {
    const fileText = "models: [{ source: a.gguf, kv: { tokens: 64 } }, { source: b.gguf }]";
    expect(loadConfig({ fileText, flags: { model: "c.gguf" } }).models).toEqual(loadConfig({ flags: { model: "c.gguf" } }).models);
  });
});

describe("models", () => {
  test("without any, the built-in one is served", () => {
    for (const fileText of ["", "models: []", "models:", "server:", "{}"]) {
      expect(loadConfig({ fileText }).models).toMatchObject([{ name: "pagoda-tiny", source: "builtin:pagoda-tiny", aliases: [] }]);
    }
  });

  test("have the shared sections with their own values over them", () => {
    const config = loadConfig({ fileText: "kv: { tokens: 4096, type: q8_0 }\nmodels: [{ source: a.gguf, kv: { tokens: 64 } }, { source: b.gguf }]" });
    expect(config.models.map(({ name, kv }) => [name, kv.tokens, kv.type])).toEqual([
      ["a", 64, "q8_0"],
      ["b", 4096, "q8_0"],
    ]);
    expect(config.models[1]?.engine).toEqual(config.engine);
    expect(config.models[1]?.scheduler).toEqual(config.scheduler);
  });

  test("of a later place replace the list, and an index changes one of them", () => {
    const fileText = "models: [{ source: a.gguf }, { source: b.gguf }]";
    const config = loadConfig({ fileText, sets: ["models.1.name=chat", "models.2.source=c.gguf"] });
    expect(config.models.map(({ name }) => name)).toEqual(["a", "chat", "c"]);
    expect(loadConfig({ fileText, sets: ["models=[{source: c.gguf}]"] }).models.map(({ name }) => name)).toEqual(["c"]);
  });
});

describe("sampling", () => {
  test("every value follows the profile unless it is set", () => {
    expect(loadConfig().sampling).toMatchObject({ temperature: 1, topP: 1, topK: 0, minP: 0, maxTokens: undefined, seed: undefined });
    expect(loadConfig({ sets: ["sampling.profile=llama", "sampling.topK=7"] }).sampling).toMatchObject({ temperature: 0.8, topP: 0.95, topK: 7, minP: 0.05 });
  });
});
