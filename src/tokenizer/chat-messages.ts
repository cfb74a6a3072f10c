/** A conversation as clients send it, and the form of it that a given template can work with. */
import { invalidRequest } from "../errors.js";
import type { TemplateTraits } from "./template-traits.js";

export interface ContentPart {
  readonly type: string;
  readonly text?: string | undefined;
  readonly refusal?: string | undefined;
}

export interface ToolCall {
  readonly id?: string | undefined;
  readonly type?: string | undefined;
  /** `arguments` is JSON text, as clients send it. */
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message in OpenAI's shape. Further members are handed to the template as they are. */
export interface ChatMessage {
  readonly role: string;
  readonly content?: string | readonly ContentPart[] | null | undefined;
  readonly name?: string | null | undefined;
  readonly tool_calls?: readonly ToolCall[] | null | undefined;
  readonly tool_call_id?: string | null | undefined;
}

/** A message as a template sees it: no member is null or undefined. */
export type TemplateMessage = Readonly<Record<string, unknown>> & { readonly role: string };

// A template may build a control token from a role, so roles cannot be marked like other text; hence only known ones.
const roles: readonly string[] = ["system", "developer", "user", "assistant", "tool", "function"];

/**
 * Brings messages into the template's form: missing content is empty text, text parts are joined by line breaks unless the template wants parts,
 * tool arguments are text or objects as it wants them, and a system message that it cannot show goes before the first user message.
 * Throws `invalid_request` naming the message that has an unknown role or content that is not text.
 */
export function templateMessages(messages: readonly ChatMessage[], traits: TemplateTraits): TemplateMessage[] {
  const plain = messages.map((message, index) => plainMessage(message, index, traits));
  const shown = traits.showsSystem ? plain : foldSystem(plain);
  return traits.content === "parts" ? shown.map((message) => ({ ...message, content: [{ type: "text", text: message.content }] })) : shown;
}

interface PlainMessage extends TemplateMessage {
  readonly content: string;
}

function plainMessage(message: ChatMessage, index: number, traits: TemplateTraits): PlainMessage {
  if (!roles.includes(message.role)) {
    const param = `messages[${index}].role`;
    throw invalidRequest({ message: `Invalid '${param}': '${message.role}' is not one of ${roles.join(", ")}.` }, { param });
  }
  const { tool_calls: calls, ...rest } = message;
  const present = Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== null && value !== undefined));
  return {
    ...present,
    role: message.role === "developer" && !traits.knowsDeveloper ? "system" : message.role,
    content: contentText(message.content, index),
    ...(calls && calls.length > 0 && { tool_calls: calls.map((call) => ({ ...call, function: templateFunction(call.function, traits) })) }),
  };
}

function contentText(content: ChatMessage["content"], index: number): string {
  if (typeof content === "string") return content;
  return (content ?? []).map((part, partIndex) => partText(part, `messages[${index}].content[${partIndex}]`)).join("\n");
}

function partText(part: ContentPart, param: string): string {
  const text = part.type === "refusal" ? part.refusal : part.type === "text" ? part.text : undefined;
  if (typeof text !== "string") throw invalidRequest({ message: `Invalid '${param}': this model takes text only, not '${part.type}'.` }, { param });
  return text;
}

function templateFunction(call: ToolCall["function"], traits: TemplateTraits): { name: string; arguments: unknown } {
  return { ...call, arguments: traits.toolArguments === "object" ? parsedObject(call.arguments) : call.arguments };
}

/** The object that a JSON text stands for; the text itself when it is none, since a model may have written it. */
function parsedObject(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : text;
  } catch {
    return text;
  }
}

function foldSystem(messages: readonly PlainMessage[]): PlainMessage[] {
  const system = messages.filter(({ role }) => role === "system").map(({ content }) => content);
  const others = messages.filter(({ role }) => role !== "system");
  if (system.length === 0) return others;
  const first = others.findIndex(({ role }) => role === "user");
  const preface = system.join("\n");
  if (first < 0) return [{ role: "user", content: preface }, ...others];
  return others.map((message, index) => (index === first ? { ...message, content: `${preface}\n\n${message.content}` } : message));
}
