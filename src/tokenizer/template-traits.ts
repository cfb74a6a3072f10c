/** Finds out what a chat template can do, by rendering small conversations with it once. */
import { PagodaError } from "../errors.js";
import type { RenderTemplate } from "./template-engine.js";

export interface TemplateTraits {
  /** Whether message content must be text or a list of parts. */
  readonly content: "text" | "parts";
  /** False for a template that cannot even show one user message: it is broken, or uses what the Jinja library lacks. */
  readonly showsUser: boolean;
  readonly showsSystem: boolean;
  readonly knowsDeveloper: boolean;
  readonly showsTools: boolean;
  readonly showsToolCalls: boolean;
  /** What `tools` must be when there are none. */
  readonly absentTools: null | undefined | readonly [];
  /** Whether the arguments of a past tool call must be JSON text, which is kept as it was given, or an object, which the template writes its own way. */
  readonly toolArguments: "text" | "object";
}

// No punctuation in them, so that a template that escapes or changes case around them still shows them.
const words = { user: "pagodaprobequestion", system: "pagodaprobesystem", tool: "pagodaprobetool", key: "pagodaprobekey", value: "pagodaprobevalue" };

/** Tries a template out. A template that refuses a conversation lacks the trait. */
export function probeTemplate(render: RenderTemplate, text: string, variables: Readonly<Record<string, unknown>>): TemplateTraits {
  const attempt = (messages: readonly unknown[], tools: unknown) => tryRender(render, { ...variables, messages, tools });
  const form = inputForms.find(({ content, absentTools }) => attempt([userMessage(content)], absentTools).includes(words.user));
  const { content, absentTools } = form ?? inputForms[0];

  const user = userMessage(content);
  const withSystem = attempt([{ role: "system", content: content(words.system) }, user], absentTools);
  const withTools = attempt([user], [probeTool]);
  const withCall = (args: unknown) => attempt(toolConversation(user, content, args), [probeTool]);
  const jsonText = `{"${words.key}": "${words.value}"}`;
  const takesText = withCall(jsonText).includes(jsonText);
  const takesObject = showsObject(withCall({ [words.key]: words.value }));
  return {
    content: content === asText ? "text" : "parts",
    absentTools,
    showsUser: form !== undefined,
    showsSystem: withSystem.includes(words.system) && withSystem.includes(words.user),
    knowsDeveloper: text.includes("developer"),
    showsTools: withTools.includes(words.tool),
    showsToolCalls: takesText || takesObject,
    toolArguments: takesObject && !takesText ? "object" : "text",
  };
}

const asText = (word: string): unknown => word;
const asParts = (word: string): unknown => [{ type: "text", text: word }];

/**
 * Ways to pass content and the absence of tools, most usual first. Templates are written for Python, where absent tools are None;
 * some loop over them all the same.
 */
const inputForms = [
  { content: asText, absentTools: null },
  { content: asText, absentTools: undefined },
  { content: asText, absentTools: [] },
  { content: asParts, absentTools: null },
] as const;

function userMessage(content: (word: string) => unknown): unknown {
  return { role: "user", content: content(words.user) };
}

const probeTool = {
  type: "function",
  function: { name: words.tool, description: "", parameters: { type: "object", properties: { [words.key]: { type: "string" } }, required: [words.key] } },
};

function toolConversation(user: unknown, content: (word: string) => unknown, args: unknown): unknown[] {
  const id = "call00001"; // nine letters and digits: some templates insist
  const call = { id, type: "function", function: { name: words.tool, arguments: args } };
  return [user, { role: "assistant", content: content(""), tool_calls: [call] }, { role: "tool", tool_call_id: id, name: words.tool, content: content("0") }];
}

/** Whether an object was written out, in whatever notation. The definition of the tool names the key too, but not the value. */
function showsObject(rendered: string): boolean {
  return rendered.includes(words.key) && rendered.includes(words.value);
}

function tryRender(render: RenderTemplate, variables: Readonly<Record<string, unknown>>): string {
  try {
    return render({ add_generation_prompt: true, ...variables });
  } catch (thrown) {
    if (thrown instanceof PagodaError) return "";
    throw thrown;
  }
}
