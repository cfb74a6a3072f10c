/** Starts the engines of one configured model and prepares what the gateway needs of it. */
import type { ModelConfig } from "../config/index.js";
import { createEngineClient, type EngineClient, type EngineInfo, type ModelInfo } from "../engine/client/index.js";
import type { ServedModel } from "../gateway/index.js";
import type { Logger, Metrics } from "../observability/index.js";
import { modelHash, textHash, versionFingerprint } from "../registry/fingerprint.js";
import { type ResolvedSource, resolveSource } from "../registry/source.js";
import { type ChatTokenizer, createChatTokenizer } from "../tokenizer/index.js";
import { compileTemplate, findTemplate } from "../tokenizer/template-engine.js";
import { engineSettings } from "./engine-settings.js";

/** A model together with the files it comes from. */
export interface FoundModel {
  readonly config: ModelConfig;
  readonly source: ResolvedSource;
}

/** Throws the coded error of a source that cannot be served, or of a template that is missing or does not parse. */
export function findModelFiles(config: ModelConfig): FoundModel {
  // The engine is not asked before: a mistake in the options must not wait until a model has loaded.
  if (config.chatTemplate !== undefined) compileTemplate(findTemplate(undefined, config.chatTemplate));
  return { config, source: resolveSource(config.source) };
}

export interface StartOptions {
  readonly metrics: Metrics;
  readonly log: Logger;
  /** How long a new request waits while no engine is up, in milliseconds. */
  readonly engineWaitMs: number;
  /** The part of the machine that this model may count on. */
  readonly machineShare: number;
}

export interface StartedModel {
  readonly served: ServedModel;
  /** Resolves when the model can answer; rejects with the coded error of a load that failed. */
  readonly loaded: Promise<unknown>;
}

/** Starts the engines at once and returns before they have loaded. */
export function startModel({ config, source }: FoundModel, options: StartOptions): StartedModel {
  const { metrics, log, engineWaitMs, machineShare } = options;
  const figures = metrics.forModel(config.name);
  const client: EngineClient = createEngineClient({
    modelName: config.name,
    settings: engineSettings(config, source.path, machineShare),
    replicas: config.engine.replicas,
    engineWaitMs,
    log,
    onStats: () => figures.readEngines(client.stats()),
  });
  let fingerprint = "";
  const chat = client.ready().then(({ model, engine }) => {
    const tokenizer = createChatTokenizer({
      tokens: model.tokens,
      chatTemplate: model.chatTemplate,
      templateOverride: config.chatTemplate,
      tokenize: (segments, settings, signal) => client.tokenize(segments, settings, signal),
    });
    warnOfTemplate(tokenizer, config.name, log);
    fingerprint = fingerprintOf(source, model, tokenizer, engine);
    figures.setCacheConfig({ pageTokens: engine.pageTokens, pages: Math.floor(engine.kvTokens / engine.pageTokens), layout: engine.kvLayout });
    return tokenizer;
  });
  // A failure is told to those who wait for `loaded` or `chat`; that nobody does must not end the process.
  chat.catch(() => undefined);
  const served: ServedModel = {
    name: config.name,
    aliases: config.aliases,
    createdUnixSeconds: source.createdUnixSeconds,
    client,
    chat,
    /** Known once `chat` is, which every answer waits for. */
    get fingerprint() {
      return fingerprint;
    },
  };
  return { served, loaded: chat };
}

/** Such a template answers every chat as if nobody had asked, which nothing else would tell. */
function warnOfTemplate({ template: { source, traits } }: ChatTokenizer, model: string, log: Logger): void {
  if (traits.showsUser) return;
  log.warn({ model, template: source.origin }, "the chat template does not show what users write; answers will not fit (choose another with --chat-template)");
}

function fingerprintOf(source: ResolvedSource, { tokens }: ModelInfo, { template }: ChatTokenizer, { llamaVersion }: EngineInfo): string {
  return versionFingerprint({
    model: modelHash(source.parts),
    tokenizer: textHash(JSON.stringify(tokens)),
    template: textHash(template.source.text),
    engine: llamaVersion,
  }).short;
}
