/** From a checked body to what the engine is asked. */
import type { SamplingConfig } from "../../config/sampling-profile.js";
import type { GenerateRequest } from "../../engine/client/engine-client.js";
import { contextTooLong } from "../../errors.js";
import type { LoadedModel, ServedModel } from "../served-model.js";
import type { ChatFields } from "./chat-schema.js";
import type { RequestedBias } from "./logit-bias.js";
import { toChatMessage } from "./message-schema.js";
import { choiceSeeds, samplingParameters } from "./sampling-schema.js";
import { toolsFor } from "./tool-schema.js";

/** What a request comes to. */
export interface PreparedChat {
  readonly generate: GenerateRequest;
  readonly stop: readonly string[];
  /** The prompt is to be computed and nothing to be answered. */
  readonly isPromptOnly: boolean;
}

/** Renders and tokenizes a request for a model. Throws a coded 400 when the template refuses it or the prompt does not fit. */
export async function prepareChat(
  id: string,
  fields: ChatFields,
  model: ServedModel,
  loaded: LoadedModel,
  defaults: SamplingConfig,
  signal: AbortSignal,
): Promise<PreparedChat> {
  const input = {
    messages: fields.messages.map(toChatMessage),
    tools: toolsFor(fields),
    templateVariables: templateVariables(fields),
    addGenerationPrompt: fields.add_generation_prompt,
  };
  const promptTokens = await loaded.chat.encodeChat(input, { contextTokens: loaded.contextTokens, signal });
  const roomTokens = loaded.contextTokens - promptTokens.length;
  if (roomTokens < 1) throw promptTooLong(promptTokens.length, loaded.contextTokens);

  const biases = await biasTokens(fields.logit_bias, model, loaded, signal);
  const wantedTokens = outputLimit(fields, defaults);
  const seeds = choiceSeeds(fields.seed, defaults.seed, fields.n ?? 1);
  const topLogprobs = fields.logprobs === true ? (fields.top_logprobs ?? 0) : undefined;
  const generate: GenerateRequest = {
    id,
    promptTokens,
    choices: seeds.map((seed, index) => ({ index, seed, outputTokens: [] })),
    maxTokens: Math.max(1, Math.min(wantedTokens ?? roomTokens, roomTokens)),
    sampling: samplingParameters(fields, defaults, biases),
    ...(topLogprobs !== undefined && { topLogprobs }),
    ignoreEndOfGeneration: fields.ignore_eos ?? false,
    // Prefixes are shared by salt: a request that wants no cache has one that nobody shares.
    salt: fields.cache_prompt === false ? id : "",
  };
  return { generate, stop: stopStrings(fields.stop), isPromptOnly: wantedTokens === 0 };
}

/** llama-server's precedence. undefined leaves only the context as a limit, and so does -1. */
function outputLimit(fields: ChatFields, defaults: SamplingConfig): number | undefined {
  const given = fields.n_predict ?? fields.max_completion_tokens ?? fields.max_tokens;
  if (given === undefined) return defaults.maxTokens;
  return given === -1 ? undefined : given;
}

function stopStrings(stop: ChatFields["stop"]): readonly string[] {
  const all = typeof stop === "string" ? [stop] : (stop ?? []);
  return all.filter((one) => one !== "");
}

function templateVariables(fields: ChatFields): Readonly<Record<string, unknown>> {
  const { reasoning_effort: effort, verbosity, chat_template_kwargs: own } = fields;
  return {
    ...(effort !== undefined && { reasoning_effort: effort }),
    ...(effort === "none" && { enable_thinking: false }),
    ...(verbosity !== undefined && { verbosity }),
    ...own,
  };
}

/** Biases by token id, one for each: the last one counts. A text's bias goes to each of its tokens; ids outside the vocabulary are dropped. */
async function biasTokens(
  requested: readonly RequestedBias[] = [],
  model: ServedModel,
  loaded: LoadedModel,
  signal: AbortSignal,
): Promise<(readonly [number, number | null])[]> {
  const texts = requested.flatMap(({ token }) => (typeof token === "string" ? [{ text: token, parseSpecial: false }] : []));
  const tokensOfTexts = texts.length === 0 ? [] : await model.client.tokenize(texts, { addSpecial: false }, signal);
  const remaining = tokensOfTexts.values();
  const size = loaded.chat.vocabulary.size;
  const byToken = new Map<number, number | null>();
  for (const { token, bias } of requested) {
    const ids = typeof token === "string" ? (remaining.next().value ?? []) : [token];
    for (const id of ids) if (id >= 0 && id < size) byToken.set(id, bias);
  }
  return [...byToken];
}

function promptTooLong(promptTokens: number, contextTokens: number): Error {
  return contextTooLong({ promptTokens, contextTokens }, { param: "messages", details: { n_prompt_tokens: promptTokens, n_ctx: contextTokens } });
}
