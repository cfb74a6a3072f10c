/** The messages of a chat as they come in, of every role. */
import { z } from "zod";
import { unsupportedParameter } from "../../errors.js";
import type { ChatMessage } from "../../tokenizer/index.js";
import { anyObject, list, optional, text } from "./fields.js";

const textPart = z.looseObject({ type: z.literal("text"), text: text() });
const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: text() });
// Known but not for text models: refused later, by name, rather than as an unknown type.
const mediaPart = z.looseObject({ type: z.literal(["image_url", "input_audio", "file", "video_url"]) });

const part = z.discriminatedUnion("type", [textPart, refusalPart, mediaPart], {
  error: "must be an object whose type is 'text'",
});

type RequestPart = z.output<typeof part>;

const maxParts = 4096;
const maxToolCalls = 1024;
const contentMessage = `must be a string or an array of at most ${maxParts} content parts`;
const content = z.union([text(), list(part, maxParts, contentMessage)], { error: contentMessage });

const toolCall = z.looseObject({
  id: optional(text()),
  type: optional(z.literal("function", { error: "must be 'function'" })),
  function: z.looseObject({ name: text(), arguments: z.union([text(), anyObject()], { error: "must be a string of JSON" }).default("") }),
});

const name = optional(text());

const system = z.looseObject({ role: z.literal(["system", "developer"]), content, name });
const user = z.looseObject({ role: z.literal("user"), content, name });
const tool = z.looseObject({ role: z.literal("tool"), content, tool_call_id: optional(text()), name });
const assistant = z
  .looseObject({
    role: z.literal("assistant"),
    content: optional(content),
    name,
    refusal: optional(text()),
    reasoning_content: optional(text()),
    tool_calls: optional(list(toolCall, maxToolCalls, `must be an array of at most ${maxToolCalls} tool calls`)),
    function_call: optional(anyObject()),
  })
  .refine(({ content, refusal, tool_calls: calls }) => content !== undefined || refusal !== undefined || (calls !== undefined && calls.length > 0), {
    path: ["content"],
    error: "must be given where there are no tool_calls",
  });

/** One message. Members that clients send back from an earlier answer, such as `annotations`, are let through. */
export const messageSchema = z.discriminatedUnion("role", [system, user, assistant, tool], {
  error: (issue) =>
    issue.code === "invalid_union" ? "must be one of 'system', 'developer', 'user', 'assistant', 'tool'" : "must be an object with a role and content",
});

export type RequestMessage = z.output<typeof messageSchema>;

/** Makes the tokenizer's message of a client's. Throws a coded 400 for what a text model cannot read. */
export function toChatMessage(message: RequestMessage, index: number): ChatMessage {
  const field = `messages[${index}]`;
  const { role, name, content } = message;
  const common = { role, name, content: readableContent(content, `${field}.content`) };
  if (message.role === "tool") return { ...common, tool_call_id: message.tool_call_id };
  if (message.role !== "assistant") return common;
  if (message.function_call !== undefined) {
    throw unsupportedParameter({ field: `${field}.function_call`, hint: "use 'tool_calls'." }, { param: `${field}.function_call` });
  }
  const { reasoning_content: reasoning, refusal, tool_calls: calls } = message;
  return {
    ...common,
    content: common.content ?? refusal,
    ...(reasoning !== undefined && { reasoning_content: reasoning }),
    tool_calls: calls?.map(({ id, function: called }) => ({
      id,
      type: "function",
      function: { name: called.name, arguments: typeof called.arguments === "string" ? called.arguments : JSON.stringify(called.arguments) },
    })),
  };
}

function readableContent(content: string | readonly RequestPart[] | undefined, field: string): ChatMessage["content"] {
  if (content === undefined || typeof content === "string") return content;
  for (const [index, { type }] of content.entries()) {
    if (type === "text" || type === "refusal") continue;
    const param = `${field}[${index}].type`;
    throw unsupportedParameter({ field: param, hint: `the model reads text only, not '${type}'.` }, { param });
  }
  return content.map((part) => (part.type === "refusal" ? { type: "text", text: part.refusal } : part));
}
