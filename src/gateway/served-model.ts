/** The models behind the server, and how a request's `model` names one of them. */
import type { EngineClient } from "../engine/client/engine-client.js";
import { engineUnavailable, modelNotFound } from "../errors.js";
import type { ChatTokenizer } from "../tokenizer/index.js";

/** One model as the gateway holds it. */
export interface ServedModel {
  /** What answers call the model, whichever of its names the request used. */
  readonly name: string;
  readonly aliases: readonly string[];
  readonly createdUnixSeconds: number;
  readonly client: EngineClient;
  /** Known once the model is loaded; rejects with the coded error of a load that failed. */
  readonly chat: ChatTokenizer | Promise<ChatTokenizer>;
  /** Which model, tokenizer, template and engine answer: `system_fingerprint`. */
  readonly fingerprint: string;
}

/** The model of exactly this name or alias. */
export function findModel(models: readonly ServedModel[], name: string): ServedModel | undefined {
  return models.find((model) => model.name === name || model.aliases.includes(name));
}

/**
 * The model that a request is for: the first one when it names none. A server of one model takes any name, as llama-server does,
 * since many clients send a fixed one; a server of several refuses names that it does not know.
 */
export function routeToModel(models: readonly ServedModel[], name: string | undefined): ServedModel {
  const [first, ...others] = models;
  if (first !== undefined && (name === undefined || others.length === 0)) return first;
  const model = findModel(models, name ?? "");
  if (model === undefined) throw unknownModel(models, name ?? "");
  return model;
}

export function unknownModel(models: readonly ServedModel[], name: string): Error {
  return modelNotFound({ model: name, known: models.map((model) => model.name) }, { param: "model" });
}

/** What is known of a loaded model. */
export interface LoadedModel {
  readonly chat: ChatTokenizer;
  /** Prompt and output of one choice at most. */
  readonly contextTokens: number;
}

/** Waits until the model is loaded, up to `waitMs`; then the request gets a 503. */
export async function whenLoaded(model: ServedModel, waitMs: number, signal: AbortSignal): Promise<LoadedModel> {
  const { promise: givenUp, reject } = withRejection();
  const timer = setTimeout(() => reject(engineUnavailable({ model: model.name, waitedMs: waitMs }, { retryAfterSeconds: 5 })), waitMs);
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    const loaded = Promise.all([model.chat, model.client.ready()]);
    const [chat, { engine }] = await Promise.race([loaded, givenUp]);
    return { chat, contextTokens: engine.contextTokens };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

function withRejection(): { readonly promise: Promise<never>; readonly reject: (reason: unknown) => void } {
  let reject: (reason: unknown) => void = () => undefined;
  const promise = new Promise<never>((_, rejectPromise) => {
    reject = rejectPromise;
  });
  return { promise, reject };
}
