import { describe, expect, test } from "vitest";
import { PagodaError } from "../errors.js";
import { loadConfig } from "./index.js";
import { allKeys } from "./key-tree.js";
import type { ConfigSources } from "./load.js";

/** The problems, one a line; throws when there are none. */
function problemsOf(sources: ConfigSources): readonly string[] {
  try {
    loadConfig(sources);
  } catch (error) {
    if (!(error instanceof PagodaError) || error.code !== "config_invalid") throw error;
    const lines = error.message.split("\n");
    return lines.length === 1 ? lines : lines.slice(1).map((line) => line.trim());
  }
  throw new Error("This configuration has no problems.");
}

describe("a problem names the key, the value, its place, and what is allowed or the nearest key", () => {
  test.each<[string, ConfigSources, string[]]>([
    ["a slip in a file", { fileText: "server:\n  host: localhost\n  prot: 9000\n" }, ["server.prot", "9000", ":3", "Did you mean server.port?"]],
    ["a slip in a section", { fileText: "\nsever: {}\n" }, ["sever", ":2", "Did you mean server?"]],
    ["a key of another section", { sets: ["server.maxBatchTokens=5"] }, ["server.maxBatchTokens", '"5"', "--set", "Did you mean scheduler.maxBatchTokens?"]],
    ["a key without its section", { sets: ["port=5"] }, ["port", "Did you mean server.port?"]],
    ["a slip in a model", { fileText: "models:\n  - sorce: a.gguf\n    source: b.gguf" }, ["models.0.sorce", ":2", "Did you mean models.0.source?"]],
    ["a key below a value", { sets: ["server.port.number=1"] }, ["server.port.number", "server.port has no keys below it"]],
    ["a key that is nothing like one", { sets: ["frobnication=1"] }, ["frobnication", "Known at the top: server, engine,"]],
    ["a prototype's name", { sets: ["__proto__.port=1", "constructor=2"] }, ["__proto__.port"]],
    ["a wrong type", { fileText: "server:\n  port: eighty\n" }, ['server.port: "eighty"', ":2", "a whole number from 0 to 65535"]],
    ["a quoted number", { fileText: 'server: { port: "80" }' }, ['server.port: "80"', "a whole number"]],
    ["a value out of range", { sets: ["kv.pageTokens=0"] }, ["kv.pageTokens: 0", "--set kv.pageTokens=0", "from 1 to 1024"]],
    ["a fraction", { sets: ["engine.threads=1.5"] }, ["engine.threads: 1.5", "auto | a whole number from 1 to 512"]],
    ["a word out of a choice", { environment: { PAGODA_KV_TYPE: "q5" } }, ['kv.type: "q5"', "PAGODA_KV_TYPE", "f16 | q8_0 | q4_0"]],
    ["a duration without a unit", { fileText: "server: { shutdownGrace: 30 }" }, ["server.shutdownGrace: 30", "a duration with its unit"]],
    ["a duration that no timer can wait", { sets: ["server.requestTimeout=1000h"] }, ['server.requestTimeout: "1000h"', "from 1ms to 596h"]],
    ["more threads than llama.cpp can have", { sets: ["engine.threads=100000"] }, ["engine.threads: 100000", "from 1 to 512"]],
    ["what is no number", { fileText: "sampling: { topP: .nan }" }, ["sampling.topP: .nan is not allowed"]],
    ["what has no end", { sets: ["sampling.topP=-.inf"] }, ["sampling.topP: -.inf is not allowed"]],
    ["a size with an unknown unit", { sets: ["server.bodyLimit=8MB/s"] }, ["8MB/s", "KiB, MiB, GiB"]],
    ["a size below the least", { sets: ["server.bodyLimit=0"] }, ["server.bodyLimit: 0", "at least 1KiB"]],
    ["a section that is a value", { fileText: "server: 8000" }, ["server: 8000", "a section with the keys host, port"]],
    ["a list that is a section", { fileText: "models: { source: a }" }, ["models:", "a list of sections"]],
    ["a model that is a value", { fileText: "models: [./a.gguf]" }, ['models.0: "./a.gguf"', "a section with the keys name, source"]],
    ["an empty value", { fileText: "server: { port: }" }, ["server.port: null", "a whole number"]],
    ["a flag", { flags: { port: "http" } }, ['server.port: "http"', "--port"]],
    ["a --set without a value", { sets: ["server.port"] }, ["--set server.port", "a key and a value are needed"]],
    ["an unknown variable", { environment: { PAGODA_SERVER_PROT: "1" } }, ["PAGODA_SERVER_PROT", '"1"', "Did you mean PAGODA_SERVER_PORT?"]],
    ["a variable without its section", { environment: { PAGODA_PORT: "9000" } }, ["PAGODA_PORT", '"9000"', "Did you mean PAGODA_SERVER_PORT?"]],
    ["a variable that names nothing", { environment: { PAGODA_: "1" } }, ["PAGODA_: the name of a configuration key is missing", '"1"']],
    ["a slip in section and key", { sets: ["sever.prot=1"] }, ["Did you mean server.port?"]],
    ["a slip in the dot", { sets: ["serverport=1"] }, ["Did you mean server.port?"]],
    ["an index that leaves a gap", { sets: ["models.2.name=a"] }, ["models.2.name", "has 1 entries", "models.1"]],
    ["a model without a source", { fileText: "models: [{ name: a }]" }, ["models.0.source", "missing", "builtin:NAME"]],
    ["a source that comes later", { flags: { model: "hf:org/repo/file.gguf" } }, ["models.0.source", "hf:org/repo/file.gguf", "builtin:NAME"]],
    ["a name with spaces", { sets: ["models.0.name=a b"] }, ["models.0.name", '"a b"', "without spaces"]],
    ["a file that is missing", { file: "/nonexistent/pagoda.yaml" }, ["/nonexistent/pagoda.yaml", "cannot be read", "ENOENT"]],
    ["a file that is no YAML", { fileText: "server: {\n port: 1" }, ["configuration:2", "not valid YAML"]],
    ["a file that sets a key twice", { fileText: "kv: {}\nkv: {}" }, ["configuration:2", "not valid YAML", "unique"]],
    ["a file that is a list", { fileText: "- server" }, ["a mapping of sections"]],
  ])("%s", (_, sources, parts) => {
    const [problem = ""] = problemsOf(sources);
    for (const part of parts) expect(problem).toContain(part);
  });
});

test.each([
  { sets: ["server.toString=1"] },
  { sets: ["a.b.c.d.e=1"] },
  { sets: ["kv.frobnication=1"] },
  { sets: ["port.kv.x=1"] },
  { environment: { PAGODA_SERVER_TOSTRING: "1" } },
  { environment: { PAGODA_HOME: "/opt" } },
])("what is near no key gets no hint: %j", (sources) => {
  expect(problemsOf(sources)).toEqual([expect.not.stringContaining("Did you mean")]);
});

test("every duration has the longest that a timer can wait as its bound", () => {
  const durations = allKeys().filter(({ allowed }) => allowed.startsWith("a duration"));
  expect(durations.length).toBeGreaterThan(3);
  for (const { schema } of durations) {
    expect(schema.parse("596h")).toBeLessThan(2 ** 31);
    expect(schema.safeParse("597h").success).toBe(false);
  }
});

describe("values that cannot hold together", () => {
  test.each<[readonly string[], readonly string[]]>([
    [
      ["kv.pageTokens=64", "kv.tokens=63"],
      ["kv.pageTokens 64 (--set kv.pageTokens=64)", "kv.tokens 63"],
    ],
    [["kv.tokens=31"], ["kv.pageTokens 32 (default)", "kv.tokens 31 (--set kv.tokens=31)"]],
    [
      ["scheduler.maxBatchTokens=4", "scheduler.maxSequences=5"],
      ["scheduler.maxBatchTokens 4", "scheduler.maxSequences 5"],
    ],
    [
      ["kv.type=q8_0", "engine.flashAttention=off"],
      ['kv.type "q8_0"', "engine.flashAttention", "needs flash attention"],
    ],
    [
      ["kv.type=q4_0", "engine.flashAttention=off"],
      ['kv.type "q4_0"', "engine.flashAttention"],
    ],
    [
      ["engine.backend=cpu", "engine.gpuLayers=1"],
      ["engine.gpuLayers 1", 'engine.backend "cpu"'],
    ],
    [
      ["kv.layout=streams", "kv.tokens=255", "scheduler.maxSequences=8"],
      ["kv.tokens 255", "scheduler.maxSequences 8", "256"],
    ],
    [["models.0.kv.tokens=16"], ["models.0.kv.tokens 16 (--set models.0.kv.tokens=16)", "kv.pageTokens 32 (default)"]],
    [
      ["models.0.name=a", "models.1.source=x/a.gguf"],
      ["models.1.name (from models.1.source)", 'models.0.name "a"'],
    ],
    [
      ["models.0.name=a", "models.0.aliases=[b, a]"],
      ["models.0.aliases", 'the name "a"'],
    ],
    [
      ["models.0.aliases=[a]", "models.1.source=b.gguf", "models.1.aliases=[a]"],
      ["models.1.aliases", "models.0.aliases", 'the name "a"'],
    ],
  ])("%j", (sets, parts) => {
    const problems = problemsOf({ sets });
    expect(problems).toHaveLength(1);
    for (const part of [...parts, "cannot hold"]) expect(problems[0]).toContain(part);
  });

  test.each([
    [["kv.pageTokens=64", "kv.tokens=64"]],
    [["scheduler.maxBatchTokens=8", "scheduler.maxSequences=8"]],
    [["kv.type=q8_0", "engine.flashAttention=auto"]],
    [["engine.backend=cpu", "engine.gpuLayers=0"]],
    [["kv.layout=streams", "kv.tokens=256", "scheduler.maxSequences=8"]],
    [["kv.layout=unified", "kv.tokens=255", "scheduler.maxSequences=8"]],
  ])("%j just can", (sets) => expect(() => loadConfig({ sets })).not.toThrow());
});

describe("all problems are told at once", () => {
  test("of every place, with the conflicts among what is right", () => {
    const problems = problemsOf({
      fileText: "server: { prot: 1, shutdownGrace: 30 }\nkv: { tokens: 16 }\nmodels: [5, { name: a }, { source: b.gguf }]",
      environment: { PAGODA_SERVER_BODY_LIMIT: "1x" },
      sets: ["engine.threads=0"],
      flags: { port: "http" },
    });
    const keys = problems.map((problem) => problem.split(/[: ]/)[0]);
    expect(keys.sort()).toEqual(
      ["server.prot", "server.shutdownGrace", "models.0", "models.1.source", "server.bodyLimit", "engine.threads", "server.port", "kv.pageTokens"].sort(),
    );
  });

  test("a key with a problem of its own is in no conflict", () => {
    expect(problemsOf({ sets: ["kv.tokens=16", "kv.pageTokens=many"] })).toHaveLength(1);
  });
});

test("what Kubernetes sets for a service called pagoda, and an empty variable, are passed over", () => {
  const environment = {
    PAGODA_SERVICE_HOST: "10.0.0.1",
    PAGODA_SERVICE_PORT: "8000",
    PAGODA_SERVICE_PORT_HTTP: "8000",
    PAGODA_PORT: "tcp://10.0.0.1:8000",
    PAGODA_PORT_8000_TCP: "tcp://10.0.0.1:8000",
    PAGODA_PORT_8000_TCP_PROTO: "tcp",
    PAGODA_PORT_8000_TCP_PORT: "8000",
    PAGODA_PORT_8000_TCP_ADDR: "10.0.0.1",
    PAGODA_PORT_53_UDP: "udp://[fd00::1]:53",
    PAGODA_SERVER_SERVICE_HOST: "10.0.0.2",
    PAGODA_SERVER_PORT: "tcp://10.0.0.1:8000",
    PAGODA_SERVER_PORT_8000_TCP_PORT: "8000",
    PAGODA_KV_TYPE: "",
  };
  expect(loadConfig({ environment })).toEqual(loadConfig());
});
