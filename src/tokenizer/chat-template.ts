/** Renders a conversation to the parts of a prompt: control tokens where the template wrote them, text everywhere else. */
import { invalidRequest, messagesRefusedByTemplate, PagodaError } from "../errors.js";
import { type ChatMessage, templateMessages } from "./chat-messages.js";
import { createSpecialSplitter, type PromptPart } from "./special-split.js";
import { createSpellingGuards, restoreParts, type SpellingGuard } from "./spelling-guard.js";
import { compileTemplate, isReservedName, type TemplateSource } from "./template-engine.js";
import { probeTemplate, type TemplateTraits } from "./template-traits.js";
import type { Vocabulary } from "./vocabulary.js";

/** What a prompt is made from. */
export interface ChatInput {
  readonly messages: readonly ChatMessage[];
  /** Tool definitions in OpenAI's shape. */
  readonly tools?: readonly unknown[] | null | undefined;
  /** Whether the prompt ends where an answer of the assistant begins; by default it does. */
  readonly addGenerationPrompt?: boolean | undefined;
  /** `chat_template_kwargs`: further variables for the template. */
  readonly templateVariables?: Readonly<Record<string, unknown>> | null | undefined;
}

export interface ChatTemplate {
  readonly source: TemplateSource;
  readonly traits: TemplateTraits;
  /**
   * Renders a conversation. No text of the input, whatever it spells, becomes a control token.
   * Throws `messages_refused_by_template` or `invalid_request` with the field at fault.
   */
  render(input: ChatInput): PromptPart[];
}

const ownVariables = ["messages", "tools", "documents", "add_generation_prompt", "bos_token", "eos_token"];

/** Prepares a template for a vocabulary. Throws `chat_template_invalid` when it does not parse. */
export function createChatTemplate(source: TemplateSource, vocabulary: Vocabulary): ChatTemplate {
  // A spelling of one character cannot be told from text, so it is always text.
  const special = vocabulary.special.filter(({ text }) => text.length > 1);
  const split = createSpecialSplitter(special);
  const createGuard = createSpellingGuards(special.map(({ text }) => text));
  const renderText = compileTemplate(source);
  const tokenTexts = { bos_token: vocabulary.bos?.text ?? "", eos_token: vocabulary.eos?.text ?? "" };
  const traits = probeTemplate(renderText, source.text, tokenTexts);

  function variablesOf(input: ChatInput, guard: SpellingGuard): Record<string, unknown> {
    const tools = input.tools && input.tools.length > 0 ? input.tools : traits.absentTools;
    const messages = templateMessages(input.messages, traits).map(({ role, ...rest }) => ({ role, ...(guard.protect(rest) as object) }));
    const further = guard.protect(checkVariables(input.templateVariables ?? {})) as Record<string, unknown>;
    const own = { messages, tools: guard.protect(tools), documents: null, add_generation_prompt: input.addGenerationPrompt ?? true };
    return { ...further, ...own, ...tokenTexts };
  }

  return {
    source,
    traits,
    render(input) {
      const guard = createGuard([source.text, ...jsonTexts(input)]);
      try {
        return restoreParts(split(renderText(variablesOf(input, guard))), guard);
      } catch (thrown) {
        if (thrown instanceof PagodaError && thrown.code === "messages_refused_by_template") throw withoutMarks(thrown, guard);
        throw thrown;
      }
    },
  };
}

/** All of the input as text, to choose a mark by. Nesting that is too deep for JSON is too deep for a template. */
function jsonTexts(input: ChatInput): string[] {
  try {
    return [JSON.stringify([input.messages, input.tools ?? null, input.templateVariables ?? null])];
  } catch (cause) {
    throw messagesRefusedByTemplate({ reason: "they are nested too deeply" }, { cause, param: "messages" });
  }
}

function checkVariables(variables: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const taken = Object.keys(variables).find((name) => ownVariables.includes(name) || isReservedName(name));
  if (taken === undefined) return variables;
  const param = `chat_template_kwargs.${taken}`;
  throw invalidRequest({ message: `Invalid '${param}': the server sets this variable itself.` }, { param });
}

/** A template may quote the messages in its complaint. */
function withoutMarks(error: PagodaError, guard: SpellingGuard): PagodaError {
  const { code, status, type, retryable, param } = error;
  return new PagodaError({ code, status, type, retryable, message: guard.restore(error.message), ...(param !== undefined && { param }) }, error);
}
