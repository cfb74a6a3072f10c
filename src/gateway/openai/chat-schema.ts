/** The body of `POST /v1/chat/completions`: what it may hold, and what is refused because it cannot be honoured. */
import { z } from "zod";
import { invalidRequest, type PagodaError, unsupportedParameter } from "../../errors.js";
import { anyObject, boolean, fieldPath, integer, optional, text, word } from "./fields.js";
import { messageSchema } from "./message-schema.js";
import { samplingFields } from "./sampling-schema.js";
import { toolFields } from "./tool-schema.js";

const maxStopStrings = 32;
const stopMessage = `must be a string or an array of at most ${maxStopStrings} strings`;

const chatSchema = z.object(
  {
    messages: z.array(messageSchema, { error: "must be an array of messages" }).min(1, "must have at least one message"),
    model: optional(text()),
    ...samplingFields,
    ...toolFields,
    n_predict: optional(integer(-1)),
    max_completion_tokens: optional(integer(-1)),
    max_tokens: optional(integer(-1)),
    n: optional(integer(1, 128)),
    stop: optional(z.union([z.string(), z.array(z.string()).max(maxStopStrings)], { error: stopMessage })),
    stream: optional(boolean()),
    stream_options: optional(z.object({ include_usage: optional(boolean()) }, { error: "must be an object" })),
    logprobs: optional(boolean()),
    top_logprobs: optional(integer(0, 20)),
    response_format: optional(z.looseObject({ type: word("text", "json_object", "json_schema") }, { error: "must be an object with a type" })),
    reasoning_effort: optional(word("none", "minimal", "low", "medium", "high", "xhigh", "max")),
    verbosity: optional(word("low", "medium", "high")),
    modalities: optional(z.array(word("text", "audio"), { error: "must be an array" })),
    metadata: optional(z.record(z.string(), text(), { error: "must be an object of strings" })),
    service_tier: optional(text()),
    chat_template_kwargs: optional(anyObject()),
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
  if (!result.success) throw badField(result.error.issues[0], body);
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

function badField(issue: z.core.$ZodIssue | undefined, body: unknown): PagodaError {
  if (issue === undefined || issue.path.length === 0) return invalidRequest({ message: "The body must be a JSON object." });
  const { path, message } = innermost(issue);
  const param = fieldPath(path);
  const value = path.reduce<unknown>((at, part) => (typeof at === "object" && at !== null ? Reflect.get(at, part) : undefined), body);
  const received = value === undefined ? "it is missing" : `not ${shown(value)}`;
  return invalidRequest({ message: `'${param}' ${message}, ${received}.` }, { param });
}

/** Of a value that fits none of several kinds, the fault deepest inside it: the kind that was meant fits furthest. */
function innermost(issue: z.core.$ZodIssue): { readonly path: readonly PropertyKey[]; readonly message: string } {
  const inner = issue.code === "invalid_union" ? issue.errors.flat().filter(({ path }) => path.length > 0) : [];
  const [deepest] = inner.map(innermost).sort((a, b) => b.path.length - a.path.length);
  return deepest === undefined ? issue : { path: [...issue.path, ...deepest.path], message: deepest.message };
}

/** A value as an error message shows it: numbers and short words as they are, everything else by its kind. */
function shown(value: unknown): string {
  if (typeof value === "string") return value.length <= 40 ? `'${value}'` : "a long string";
  if (typeof value === "number" || typeof value === "boolean" || value === null) return String(value);
  return Array.isArray(value) ? "an array" : "an object";
}
