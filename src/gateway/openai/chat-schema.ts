/** The body of `POST /v1/chat/completions`: what it may hold, and what is refused because it cannot be honoured. */
import { z } from "zod";
import { invalidRequest, type PagodaError, unsupportedParameter } from "../../errors.js";
import { badField, faultOf } from "./field-faults.js";
import { anyObject, boolean, integer, list, optional, text, word } from "./fields.js";
import { messageSchema } from "./message-schema.js";
import { samplingFields } from "./sampling-schema.js";
import { toolFields } from "./tool-schema.js";

// Far more than any use has. Each limit bounds work that is done while no other request is served.
const maxMessages = 4096;
const maxTemplateValues = 1000;
const maxMetadata = 128;
const maxStopStrings = 32;
const maxStopCharacters = 1000;
const stopMessage = `must be a string or an array of at most ${maxStopStrings} strings, each of at most ${maxStopCharacters} characters`;
const stopString = z.string({ error: stopMessage }).max(maxStopCharacters, stopMessage);

const chatSchema = z.object(
  {
    messages: list(messageSchema, maxMessages, `must be an array of 1 to ${maxMessages} messages`).refine(
      (messages) => messages.length > 0,
      `must be an array of 1 to ${maxMessages} messages`,
    ),
    model: optional(text(1024)),
    ...samplingFields,
    ...toolFields,
    n_predict: optional(integer(-1)),
    max_completion_tokens: optional(integer(-1)),
    max_tokens: optional(integer(-1)),
    n: optional(integer(1, 128)),
    stop: optional(z.union([stopString, list(stopString, maxStopStrings, stopMessage)], { error: stopMessage })),
    stream: optional(boolean()),
    stream_options: optional(z.object({ include_usage: optional(boolean()) }, { error: "must be an object" })),
    logprobs: optional(boolean()),
    top_logprobs: optional(integer(0, 20)),
    response_format: optional(z.looseObject({ type: word("text", "json_object", "json_schema") }, { error: "must be an object with a type" })),
    reasoning_effort: optional(word("none", "minimal", "low", "medium", "high", "xhigh", "max")),
    verbosity: optional(word("low", "medium", "high")),
    modalities: optional(list(word("text", "audio"), 2, "must be an array of 'text' or 'audio'")),
    metadata: optional(anyObject(maxMetadata).pipe(z.record(z.string(), text(), { error: "must be an object of strings" }))),
    service_tier: optional(text()),
    chat_template_kwargs: optional(anyObject(maxTemplateValues)),
    add_generation_prompt: optional(boolean()),
    cache_prompt: optional(boolean()),
  },
  { error: "The body must be a JSON object" },
);

export type ChatFields = z.output<typeof chatSchema>;

/** Fields that ask for something that is not there: refused when set, as ignoring them would give a wrong answer silently. */
const refusedFields: Readonly<Record<string, string>> = {
  functions: "use 'tools'.",
  function_call: "use 'tools' and 'tool_choice'.",
  audio: "answers are text.",
  web_search_options: "there is no web search.",
  moderation: "there is no moderation.",
  grammar: "answers cannot be constrained yet.",
  json_schema: "answers cannot be constrained yet.",
  samplers: "the order of samplers is fixed.",
  n_probs: "use 'logprobs' and 'top_logprobs'.",
  lora: "there are no adapters.",
  continue_final_message: "an answer always begins anew.",
  thinking_budget_tokens: "reasoning cannot be limited yet.",
};

/** Checks a body. Throws a coded 400 that names the first field at fault. */
export function parseChatBody(body: unknown): ChatFields {
  refuseUnsupported(body);
  const result = chatSchema.safeParse(body);
  if (!result.success) throw firstFault(result.error, body);
  const fields = result.data;
  if (fields.response_format !== undefined && fields.response_format.type !== "text") {
    throw unsupported("response_format", `answers cannot be constrained to '${fields.response_format.type}' yet.`);
  }
  if (fields.modalities?.includes("audio") === true) throw unsupported("modalities", "answers are text.");
  if (fields.top_logprobs !== undefined && fields.logprobs !== true) {
    throw invalidRequest({ message: "'top_logprobs' needs 'logprobs' to be true." }, { param: "top_logprobs" });
  }
  return fields;
}

function refuseUnsupported(body: unknown): void {
  if (typeof body !== "object" || body === null) return;
  for (const [field, value] of Object.entries(body)) {
    const hint = Object.hasOwn(refusedFields, field) ? refusedFields[field] : undefined;
    if (hint !== undefined && !isEmpty(value)) throw unsupported(field, hint);
  }
}

/** Values by which clients say that they do not use a field. */
function isEmpty(value: unknown): boolean {
  if (value === null || value === false || value === "" || value === 0) return true;
  return Array.isArray(value) && value.length === 0;
}

function unsupported(field: string, hint: string): PagodaError {
  return unsupportedParameter({ field, hint }, { param: field });
}

function firstFault({ issues: [issue] }: z.ZodError, body: unknown): PagodaError {
  return badField(issue && faultOf(issue), body);
}
