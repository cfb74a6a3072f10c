/** Every configuration key: its type, its default and its meaning. The reference, the loader and the types all come from here. */
import { z } from "zod";
import { modelNameOf } from "./model-name.js";
import { type ProfiledName, resolveSampling, samplingProfiles } from "./sampling-profile.js";
import { autoOrInteger, autoOrToggle, choice, decimal, duration, integer, key, size, text, textList, toggle, wordOrInteger } from "./setting.js";

export type { SamplingConfig } from "./sampling-profile.js";

const serverKeys = {
  host: key(text("a host name or IP address"), "127.0.0.1", "Address to listen on; 0.0.0.0 or :: is every address of the machine."),
  port: key(integer(0, 65535), 8000, "TCP port to listen on; 0 lets the system choose a free one."),
  bodyLimit: key(size(1024), "8MiB", "Largest request body; a larger one gets status 413."),
  requestTimeout: key(duration(1), "600s", "A request that takes longer is ended."),
  shutdownGrace: key(duration(), "30s", "How long running answers may go on after SIGTERM."),
  engineWait: key(duration(), "30s", "How long a new request waits while no engine is up; then it gets status 503."),
  streamBuffer: key(size(1024), "1MiB", "Unsent output of one stream at most."),
  slowReaderTimeout: key(duration(1), "30s", "A client that takes nothing of its stream for this long is cut off."),
  pingInterval: key(duration(1), "15s", "A stream that is silent for this long gets a comment line, which keeps proxies from closing it."),
};

/** llama.cpp's GGML_MAX_N_THREADS. How many make sense on a machine is the planner's question. */
const mostThreads = 512;

const engineKeys = {
  backend: key(choice("auto", "cpu", "cuda", "metal", "vulkan"), "auto", "What computes; auto takes the fastest that this machine has."),
  libraries: key(
    text("bundled | a folder with llama.cpp's shared libraries"),
    "bundled",
    "Where llama.cpp's shared libraries come from: those that are installed with Pagoda, or your own build of the same release.",
  ),
  threads: key(
    autoOrInteger(1, mostThreads),
    "auto",
    "CPU threads of one engine, at most four for each core; auto is one for each core, and fewer for a small model.",
  ),
  gpuLayers: key(autoOrInteger(0), "auto", "Layers of the model that the GPU holds."),
  flashAttention: key(autoOrToggle(), "auto", "Whether attention is computed by the fused kernel; a quantised kv.type needs it."),
  replicas: key(integer(1, 64), 1, "Engine processes for each model; each has its own copy of the KV cache."),
};

const schedulerKeys = {
  maxSequences: key(autoOrInteger(1, 256), "auto", "Sequences that an engine works on at the same time."),
  maxBatchTokens: key(integer(1), 512, "Tokens that one step computes at most, new tokens and prompt chunks together."),
  maxQueuedRequests: key(integer(0), 256, "Requests that wait in an engine's queue at most; past it they get status 429."),
  maxQueuedTokens: key(autoOrInteger(0), "auto", "Prompt tokens that wait in an engine's queue at most."),
  sharePrefixes: key(toggle(), "on", "Whether requests reuse the computed beginning that they have in common with others."),
};

const kvKeys = {
  layout: key(choice("auto", "streams", "unified"), "auto", "One region of the KV cache for each sequence (streams), or one for all (unified)."),
  tokens: key(autoOrInteger(1), "auto", "Tokens that the KV cache of one engine holds."),
  pageTokens: key(integer(1, 1024), 32, "Tokens of one page, the unit in which the cache is counted, shared and freed."),
  type: key(choice("f16", "q8_0", "q4_0"), "f16", "Number format of the KV cache; the quantised ones take about a half and a quarter of the memory."),
};

/** Counts that llama.cpp keeps in 32 bits. */
const mostCounted = 2 ** 31 - 1;

/** Each key has the range of the request's field that it stands in for. */
const samplingKeys = {
  profile: key(
    choice("openai", "llama"),
    "openai",
    "The defaults of the keys below: OpenAI's API (the plain distribution) or llama-server's. They hold for what a request leaves open.",
  ),
  temperature: profiled("temperature", decimal(0, 2), "0 always takes the likeliest token."),
  topP: profiled("topP", decimal(0, 1), "Keep the likeliest tokens up to this much probability; 1 is off."),
  topK: profiled("topK", integer(-1, mostCounted), "Keep this many of the likeliest tokens; 0 and -1 are off."),
  minP: profiled("minP", decimal(0, 1), "Drop tokens less likely than this share of the likeliest one; 0 is off."),
  typicalP: profiled("typicalP", decimal(0, 1), "Locally typical sampling; 1 is off."),
  repeatPenalty: profiled("repeatPenalty", decimal(0.01, 100), "Divides the logits of recent tokens; 1 is off."),
  repeatLastN: profiled("repeatLastN", integer(-1, mostCounted), "How many of the last tokens the penalties look at; 0 is none, -1 all."),
  frequencyPenalty: profiled("frequencyPenalty", decimal(-2, 2), "Taken from a token's logit for each time it occurred; 0 is off."),
  presencePenalty: profiled("presencePenalty", decimal(-2, 2), "Taken from a token's logit when it occurred at all; 0 is off."),
  maxTokens: key(wordOrInteger("unlimited", 1), "unlimited", "Output tokens of one answer at most; unlimited means as far as the context reaches."),
  seed: key(wordOrInteger("random", 0, 4_294_967_295), "random", "Seed of the random draws; random takes a new one for each request."),
};

const observabilityKeys = {
  metrics: key(toggle(), "on", "Whether /metrics answers, in the format of Prometheus."),
  logs: z.strictObject({
    level: key(choice("trace", "debug", "info", "warn", "error", "silent"), "info", "The least important log lines to write."),
    format: key(choice("auto", "json", "pretty"), "auto", "auto is pretty on a terminal and json elsewhere."),
  }),
};

const modelNames = /^\S+$/;
// A prefix of two or more letters names a kind of source; a single letter is a Windows drive.
const modelSources = /^(builtin:\S+|(?![A-Za-z][A-Za-z0-9+.-]+:).+)$/;

const modelKeys = {
  name: key(text("a name without spaces", modelNames), undefined, "What requests call the model.", "from the source").optional(),
  source: key(text("builtin:NAME | the path of a GGUF file", modelSources), undefined, "Where the model comes from.", "required"),
  aliases: key(textList("a list of names without spaces", modelNames), [], "Further names that requests may use.").optional(),
  chatTemplate: key(
    text("a template's name | the path of a Jinja file"),
    undefined,
    "Chat template to use instead of the model's own.",
    "the model's own",
  ).optional(),
  engine: z.strictObject(engineKeys).partial().optional(),
  scheduler: z.strictObject(schedulerKeys).partial().optional(),
  kv: z.strictObject(kvKeys).partial().optional(),
};

/** The sections as a user writes them. Keys have no defaults here: those are the lowest layer that the loader merges. */
export const configSections = z.strictObject({
  server: z.strictObject(serverKeys),
  engine: z.strictObject(engineKeys),
  scheduler: z.strictObject(schedulerKeys),
  kv: z.strictObject(kvKeys),
  sampling: z.strictObject(samplingKeys),
  models: z.array(z.strictObject(modelKeys)),
  observability: z.strictObject(observabilityKeys),
});

/** The model that is served when none is named. */
export const defaultModelSource = "builtin:pagoda-tiny";

/** What each section is for, in the order of the reference. */
export const sectionMeanings: { readonly [Section in keyof z.output<typeof configSections>]: string } = {
  server: "The HTTP server.",
  engine: "How models are computed. Each of these keys can also be set for one model.",
  scheduler: "Which requests run together, and how many wait. Each of these keys can also be set for one model.",
  kv: "The KV cache, which holds what is already computed. Each of these keys can also be set for one model.",
  sampling: "How tokens are drawn when a request does not say.",
  models: `The models to serve; without any, ${defaultModelSource}. Its engine, scheduler and kv override the sections of that name.`,
  observability: "Metrics and logs.",
};

/** The whole configuration: checks the sections, then fills in what depends on other keys. */
export const configSchema = configSections.transform(({ sampling, models, ...sections }) => ({
  ...sections,
  sampling: resolveSampling(sampling),
  models: (models.length === 0 ? [{ source: defaultModelSource }] : models).map((model) => resolveModel(model, sections)),
}));

/** Resolved: durations in milliseconds, sizes in bytes, on and off as booleans, every model with its own full sections. */
export type Config = z.output<typeof configSchema>;
export type ServerConfig = Config["server"];
export type EngineConfig = Config["engine"];
export type SchedulerConfig = Config["scheduler"];
export type KvConfig = Config["kv"];
export type ModelConfig = Config["models"][number];
export type ObservabilityConfig = Config["observability"];

type ModelSection = Partial<z.output<z.ZodObject<typeof modelKeys>>> & { readonly source: string };
type OverridableSections = Pick<z.output<typeof configSections>, "engine" | "scheduler" | "kv">;

function resolveModel(model: ModelSection, sections: OverridableSections) {
  return {
    name: model.name ?? modelNameOf(model.source),
    source: model.source,
    aliases: model.aliases ?? [],
    chatTemplate: model.chatTemplate,
    engine: { ...sections.engine, ...model.engine },
    scheduler: { ...sections.scheduler, ...model.scheduler },
    kv: { ...sections.kv, ...model.kv },
  };
}

function profiled<T extends z.ZodType>(name: ProfiledName, kind: T, meaning: string) {
  const { openai, llama } = samplingProfiles;
  const initialText = openai[name] === llama[name] ? `${openai[name]}` : `${openai[name]} (openai), ${llama[name]} (llama)`;
  return key(kind, undefined, meaning, initialText).optional();
}
