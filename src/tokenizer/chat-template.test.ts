import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { builtinTemplateNames } from "./builtin-templates.js";
import { type ChatInput, createChatTemplate } from "./chat-template.js";
import { demoChatTemplate, demoVocabularyInfo } from "./fixtures/demo-vocabulary.js";
import { findTemplate } from "./template-engine.js";
import { createVocabulary } from "./vocabulary.js";

const vocabulary = createVocabulary(demoVocabularyInfo());
const template = (text: string) => createChatTemplate({ text, origin: "a test" }, vocabulary);
const folder = mkdtempSync(join(tmpdir(), "pagoda-template-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** What was rendered, with control tokens as [id]. */
function rendered(text: string, input: ChatInput): string {
  const parts = template(text).render(input);
  return parts.map((part) => (part.kind === "token" ? `[${part.id}]` : part.text)).join("");
}

const hello: ChatInput = { messages: [{ role: "user", content: "Hi" }] };
const call = { id: "c1", type: "function", function: { name: "look", arguments: '{"at":"moon"}' } };
const withCall: ChatInput = { messages: [hello.messages[0] ?? { role: "user" }, { role: "assistant", content: null, tool_calls: [call] }] };

describe("which template is used", () => {
  test("the model's own, ChatML without one, or what the operator names", () => {
    expect(findTemplate("{{ 1 }}").text).toBe("{{ 1 }}");
    expect(findTemplate(undefined).origin).toBe("builtin chatml");
    expect(findTemplate("{{ 1 }}", "llama3").origin).toBe("builtin llama3");
    const path = join(folder, "own.jinja");
    writeFileSync(path, "{{ 2 }}");
    expect(findTemplate("{{ 1 }}", path)).toEqual({ text: "{{ 2 }}", origin: path });
  });

  test("an unknown name is refused with the names there are", () => {
    expect(() => findTemplate(undefined, "chatmlx")).toThrow(/chatmlx.*chatml, llama2/s);
  });

  test("one that does not parse is refused when it is loaded", () => {
    expect(() => template("{% if %}")).toThrow(expect.objectContaining({ code: "chat_template_invalid" }));
  });

  test("every builtin shows system, question and answer in order, and ends where the assistant speaks", () => {
    const messages = [
      { role: "system", content: "one" },
      { role: "user", content: "two" },
      { role: "assistant", content: "three" },
      { role: "user", content: "four" },
    ];
    for (const name of builtinTemplateNames) {
      const chat = createChatTemplate(findTemplate(undefined, name), vocabulary);
      const text = chat
        .render({ messages })
        .map((part) => (part.kind === "token" ? "" : part.text))
        .join("");
      expect(text).toMatch(/one.*two.*three.*four/s);
      expect(chat.traits.showsUser).toBe(true);
    }
  });
});

describe("what a template is given", () => {
  test("messages, tools, special tokens, the request's own variables and the date", () => {
    const text = "{{ bos_token }}{{ messages[0].content }}{{ tools | length }}{{ eos_token }}{{ mood }}{{ strftime_now('%Y') }}{{ add_generation_prompt }}";
    const input = { ...hello, tools: [{}], templateVariables: { mood: "calm" } };
    expect(rendered(text, input)).toBe(`[0]Hi1[2]calm${new Date().getFullYear()}true`);
  });

  test("absent tools are none, or whatever a template can bear", () => {
    expect(rendered("{{ messages[0].content }}{{ tools is none }}", hello)).toBe("Hitrue");
    expect(rendered("{% for tool in tools %}{{ tool }}{% endfor %}{{ messages[0].content }}", hello)).toBe("Hi");
  });

  test("a variable that the server sets cannot be overridden", () => {
    for (const name of ["messages", "bos_token", "raise_exception", "range"]) {
      expect(() => rendered("{{ 1 }}", { ...hello, templateVariables: { [name]: 1 } })).toThrow(
        expect.objectContaining({ param: `chat_template_kwargs.${name}` }),
      );
    }
  });

  test("tool arguments stay as they were given where the template takes text, and become objects where it does not", () => {
    const loop = (print: string) => `{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or [] %}${print}{% endfor %}{% endfor %}`;
    expect(rendered(loop("{{ c.function.arguments if c.function.arguments is string else c.function.arguments | tojson }}"), withCall)).toBe('Hi{"at":"moon"}');
    expect(rendered(loop("{{ c.function.arguments | tojson }}"), withCall)).toBe('Hi{"at": "moon"}');
    expect(rendered(loop("{% for key, value in c.function.arguments.items() %}{{ key }}={{ value }}{% endfor %}"), withCall)).toBe("Hiat=moon");
  });

  test("content is a list of parts for a template that needs one", () => {
    const text = "{% for m in messages %}{% for part in m.content %}{{ part.text }}{% endfor %}{% endfor %}";
    expect(template(text).traits.content).toBe("parts");
    expect(rendered(text, hello)).toBe("Hi");
  });

  test("a system message goes before the first question where the template has no place for it", () => {
    const text = "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no') }}{% endif %}({{ m.content }}){% endfor %}";
    expect(rendered(text, { messages: [{ role: "system", content: "Be brief." }, ...hello.messages] })).toBe("(Be brief.\n\nHi)");
  });

  test("a developer message is a system message where the template does not know the role", () => {
    const input = { messages: [{ role: "developer", content: "x" }] };
    const text = "{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}";
    expect(rendered(text, input)).toBe("system:x");
    expect(rendered(`${text}{# developer #}`, input)).toBe("developer:x");
  });
});

describe("a refusal", () => {
  test("a template's exception is a 400 that names the messages and quotes them without marks", () => {
    const text = "{{ raise_exception('odd: ' + messages[0].content) }}";
    const input = { messages: [{ role: "user", content: "<|im_end|>" }] };
    const expected = { code: "messages_refused_by_template", status: 400, param: "messages", message: expect.stringContaining("odd: <|im_end|>") };
    expect(() => rendered(text, input)).toThrow(expect.objectContaining(expected));
  });

  test("so is any other failure inside a template", () => {
    expect(() => rendered("{{ messages[5].content.missing() }}", hello)).toThrow(
      expect.objectContaining({ code: "messages_refused_by_template", status: 400 }),
    );
    expect(() => rendered("{{ range(0, 10000000000) }}", hello)).toThrow(expect.objectContaining({ status: 400 }));
  });

  test("nesting without end is a 400 too", () => {
    let nested: unknown = 1;
    for (let depth = 0; depth < 50_000; depth += 1) nested = [nested];
    expect(() => rendered(demoChatTemplate, { ...hello, tools: [nested] })).toThrow(expect.objectContaining({ status: 400 }));
  });

  test("an unknown role is a 400 that names its place", () => {
    expect(() => rendered(demoChatTemplate, { messages: [{ role: "end", content: "x" }] })).toThrow(expect.objectContaining({ param: "messages[0].role" }));
  });
});

describe("user text beside a template's text", () => {
  test("cannot complete a control token", () => {
    const controls = (text: string, content: string) =>
      template(text)
        .render({ messages: [{ role: "user", content }] })
        .filter((part) => part.kind === "token");
    expect(controls("{{ messages[0].content }}|im_end|>", "<")).toEqual([]);
    expect(controls("<|im_{{ messages[0].content }}", "end|>")).toEqual([]);
    expect(controls("{{ messages[0].content | lower }}", "<|IM_END|>")).toEqual([]);
    expect(controls("{{ messages[0].content | trim }}<|im_end|>", " <|im_end|> ")).toHaveLength(1);
  });

  test("is rendered as it was, also through JSON that escapes it", () => {
    expect(rendered("{{ messages[0].content | tojson(ensure_ascii=true) }}", { messages: [{ role: "user", content: "é<|im_end|>" }] })).toBe(
      '"\\u00e9<|im_end|>"',
    );
  });
});
