/** The table of errors in the documentation and the errors that there are. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import * as errors from "../../src/errors.js";

const docs = readFileSync(new URL("../../docs/http-api.md", import.meta.url), "utf8");

/** Errors of the command line, of files and of loading, which are printed or logged. */
const isForOperators =
  /^(config_|address_|model_source_|model_file_|not_gguf|truncated_gguf|invalid_gguf|chat_template_|tokenizer_file_|model_load|model_unsupported|setting_|engine_(protocol|crashed|libraries|version|backend))/;

/** Every code with its status. Most messages do without their data; one that does not still tells the code. */
function definedCodes(): Map<string, number> {
  const anything: object = new Proxy(() => anything, { get: (_, name) => (name === Symbol.toPrimitive ? () => "" : anything), apply: () => anything });
  const codes = new Map<string, number>();
  for (const value of Object.values(errors)) {
    if (typeof value !== "function" || value.length !== 1) continue;
    const make = value as unknown as (data: object) => unknown;
    const made = make(anything);
    if (made instanceof errors.PagodaError && typeof made.code === "string") codes.set(made.code, made.status);
  }
  return codes;
}

it("are the same, with the same status", () => {
  const documented = new Map<string, string>();
  for (const [, statuses = "", codes = ""] of docs.matchAll(/^\| ([\d, ]+) \| (`[^|]*) \|/gm)) {
    const list = statuses.split(", ");
    for (const [index, [, code = ""]] of [...codes.matchAll(/`([a-z_]+)`/g)].entries()) documented.set(code, list[Math.min(index, list.length - 1)] ?? "");
  }
  const defined = [...definedCodes()].filter(([code]) => !isForOperators.test(code)).map(([code, status]) => [code, String(status)] as const);
  expect(defined.length).toBeGreaterThan(25);
  expect([...documented].sort()).toEqual(defined.sort());
});
