/** The tools of a request. They are shown to the model; that it must call one cannot be promised yet. */
import { z } from "zod";
import { invalidRequest, unsupportedParameter } from "../../errors.js";
import { anyObject, boolean, list, optional, text } from "./fields.js";

const tool = z.looseObject(
  {
    type: z.literal("function", { error: "must be 'function'" }),
    function: z.looseObject(
      {
        name: text().regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 letters, digits, dots, underscores or hyphens"),
        description: optional(text()),
        parameters: optional(anyObject()),
        strict: optional(boolean()),
      },
      { error: "must be an object with a name" },
    ),
  },
  { error: "must be an object with a type and a function" },
);

const maxTools = 128;
const toolsMessage = `must be an array of at most ${maxTools} tools`;

const namedTool = z.looseObject({ function: z.looseObject({ name: text() }) });
const allowedTools = z.looseObject({
  type: z.literal("allowed_tools"),
  allowed_tools: z.looseObject({ mode: z.enum(["auto", "required"]), tools: list(namedTool, maxTools, toolsMessage) }),
});

export const toolFields = {
  tools: optional(list(tool, maxTools, toolsMessage)),
  tool_choice: optional(
    z.union([z.enum(["none", "auto", "required"]), allowedTools, namedTool.extend({ type: z.literal("function") })], {
      error: "must be 'none', 'auto', 'required', a function or allowed_tools",
    }),
  ),
  parallel_tool_calls: optional(boolean()),
};

const toolSchema = z.object(toolFields);
export type Tool = z.output<typeof tool>;

/** The tools that the model is shown. Throws a coded 400 for a choice that would force a call, and for a tool that is not there. */
export function toolsFor({ tools = [], tool_choice: choice = "auto" }: z.output<typeof toolSchema>): readonly Tool[] {
  if (choice === "none") return [];
  if (choice === "auto") return tools;
  if (typeof choice === "object" && "allowed_tools" in choice && choice.type === "allowed_tools") {
    const { mode, tools: allowed } = (choice as z.output<typeof allowedTools>).allowed_tools;
    if (mode === "required") throw forcedCall();
    return allowed.map(({ function: { name } }) => toolNamed(tools, name));
  }
  if (typeof choice === "object") toolNamed(tools, (choice as z.output<typeof namedTool>).function.name);
  throw forcedCall();
}

function toolNamed(tools: readonly Tool[], name: string): Tool {
  const found = tools.find((one) => one.function.name === name);
  if (found === undefined) throw invalidRequest({ message: `'tool_choice' names '${name}', which is not one of the tools.` }, { param: "tool_choice" });
  return found;
}

function forcedCall(): Error {
  return unsupportedParameter({ field: "tool_choice", hint: "a tool call cannot be forced yet; use 'auto' or 'none'." }, { param: "tool_choice" });
}
