/** Runs Jinja chat templates: the functions and constants that templates expect, and errors that say whose fault it was. */
import { readFileSync } from "node:fs";
import { Environment, Interpreter, Template } from "@huggingface/jinja";
import { chatTemplateInvalid, messagesRefusedByTemplate, PagodaError } from "../errors.js";
import { builtinTemplate, builtinTemplateNames, defaultTemplateName } from "./builtin-templates.js";

export interface TemplateSource {
  readonly text: string;
  /** Where it is from, for people: `the model's own`, `builtin chatml`, or the file's path. */
  readonly origin: string;
}

/** Finds the template to use: an override (a builtin's name or a file's path), else the model's own, else ChatML. Throws `chat_template_invalid`. */
export function findTemplate(modelTemplate: string | undefined, override?: string): TemplateSource {
  if (override === undefined && modelTemplate) return { text: modelTemplate, origin: "the model's own" };
  const name = override ?? defaultTemplateName;
  const builtin = builtinTemplate(name);
  if (builtin !== undefined) return { text: builtin, origin: `builtin ${name}` };
  try {
    return { text: readFileSync(name, "utf8"), origin: name };
  } catch (cause) {
    const reason = `it is neither a builtin template (${builtinTemplateNames.join(", ")}) nor a file that can be read.`;
    throw chatTemplateInvalid({ origin: name, reason }, { cause });
  }
}

/** Renders a template with these variables. Throws `messages_refused_by_template`, also when the template fails in another way. */
export type RenderTemplate = (variables: Readonly<Record<string, unknown>>) => string;

/** Parses a template once. Throws `chat_template_invalid` when it does not parse. */
export function compileTemplate({ text, origin }: TemplateSource): RenderTemplate {
  const program = parseTemplate(text, origin);
  return (variables) => {
    try {
      const environment = new Environment();
      for (const [name, value] of Object.entries({ ...variables, ...globals })) environment.set(name, value);
      return String(new Interpreter(environment).run(program).value);
    } catch (thrown) {
      if (thrown instanceof PagodaError) throw thrown;
      const reason = thrown instanceof Error ? thrown.message : String(thrown);
      throw messagesRefusedByTemplate({ reason: `it failed (${reason})` }, { cause: thrown, param: "messages" });
    }
  };
}

/** Names that a template's variables cannot have. */
export function isReservedName(name: string): boolean {
  return Object.hasOwn(globals, name) || name === "namespace";
}

function parseTemplate(text: string, origin: string): Template["parsed"] {
  try {
    return new Template(text).parsed;
  } catch (cause) {
    throw chatTemplateInvalid({ origin, reason: `it does not parse: ${cause instanceof Error ? cause.message : String(cause)}` }, { cause });
  }
}

// The library's own strftime_now is only reachable from inside a template.
const strftimeTemplate = new Template("{{ strftime_now(format) }}");

const globals: Readonly<Record<string, unknown>> = {
  true: true,
  false: false,
  none: null,
  True: true,
  False: false,
  None: null,
  range,
  strftime_now: (format: string) => strftimeTemplate.render({ format }),
  raise_exception: (reason: unknown) => {
    throw messagesRefusedByTemplate({ reason: String(reason) }, { param: "messages" });
  },
};

const longestRange = 100_000;

/** Python's `range`. */
function range(first: number, second?: number, step = 1): number[] {
  const [start, end] = second === undefined ? [0, first] : [first, second];
  const length = Math.max(0, Math.ceil((end - start) / step));
  if (!(length <= longestRange)) throw new Error(`range() of ${length} items`);
  return Array.from({ length }, (_, index) => start + index * step);
}
