import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { configReference, formatConfig, loadConfig } from "../config/index.js";
import { run } from "./main.js";
import { packageVersion } from "./package-version.js";

const folder = mkdtempSync(join(tmpdir(), "pagoda-cli-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function fileWith(name: string, text: string): string {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

/** Exit code, what was printed, and the failures, one an entry. */
async function pagoda(args: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  const printed: string[] = [];
  const failures: string[] = [];
  const code = await run(args, { environment, print: (text) => printed.push(text), fail: (message) => failures.push(message) });
  return { code, printed: printed.join(""), failures };
}

describe("help", () => {
  const commands = [[], ["serve"], ["config"], ["config", "reference"], ["config", "print"], ["config", "check"]];

  test.each(commands.map((command) => [command.join(" "), command] as const))("of 'pagoda %s' is complete, with an example", async (line, command) => {
    const { code, printed, failures } = await pagoda([...command, "--help"]);
    expect({ code, failures }).toEqual({ code: 0, failures: [] });
    expect(printed).toContain(`Usage: pagoda${line === "" ? "" : ` ${line}`}`);
    expect(printed).toMatch(/Examples?:\n {2}\$ /);
    expect(printed).toContain("--help");
  });

  test.each([[[]], [["config"]]])("is what a command without its subcommand prints: %j", async (command) => {
    const { code, printed } = await pagoda(command);
    expect({ code, printed }).toEqual(await pagoda([...command, "--help"]).then((help) => ({ code: 0, printed: help.printed })));
  });

  test("of serve names every option that the command promises", async () => {
    const { printed } = await pagoda(["serve", "--help"]);
    for (const option of ["--config", "--model", "--alias", "--chat-template", "--host", "--port", "--set"]) expect(printed).toContain(option);
  });
});

test("--version prints the version of the package", async () => {
  expect(await pagoda(["--version"])).toEqual({ code: 0, printed: `${packageVersion()}\n`, failures: [] });
});

describe("a mistake in the command line is one line and exit code 2", () => {
  test.each([
    [["serv"], "unknown command 'serv' (Did you mean serve?)"],
    [["config", "chek", "x"], "unknown command 'chek' (Did you mean check?)"],
    [["serve", "--prt", "1"], "unknown option '--prt' (Did you mean --port?)"],
    [["--nope"], "unknown option '--nope'"],
    [["serve", "extra"], "too many arguments"],
    [["serve", "--port"], "argument missing"],
    [["config", "check"], "missing required argument 'file'"],
    [["serve", "--port", "http"], 'server.port: "http" is not allowed (--port)'],
    [["serve", "--set", "sever.port=1"], "sever.port: unknown key"],
    [["serve", "--model", "hf:org/repo/a.gguf"], "models.0.source"],
    [["config", "check", "/nonexistent.yaml"], "cannot be read"],
  ])("%j", async (args, message) => {
    const { code, printed, failures } = await pagoda(args);
    expect({ code, printed, failures }).toEqual({ code: 2, printed: "", failures: [expect.stringContaining(message)] });
    expect(failures[0]).not.toContain("\n");
  });
});

test("a model that does not exist is one line and exit code 1", async () => {
  const { code, failures } = await pagoda(["serve", "--model", "/nonexistent/chat.gguf"]);
  expect({ code, failures }).toEqual({ code: 1, failures: [expect.stringContaining("/nonexistent/chat.gguf")] });
  expect(failures[0]).not.toContain("\n");
});

describe("config", () => {
  test("reference prints the generated reference", async () => {
    expect(await pagoda(["config", "reference"])).toEqual({ code: 0, printed: configReference(), failures: [] });
  });

  test("print shows what file, environment and options come to, in a form that is read back", async () => {
    const file = fileWith("print.yaml", "server: { port: 1, host: '::' }\nmodels: [{ source: a.gguf }]\n");
    const args = ["config", "print", "--config", file, "--set", "kv.tokens=64", "--alias", "a1", "--alias", "a2"];
    const { code, printed } = await pagoda(args, { PAGODA_SERVER_PORT: "2" });
    const expected = loadConfig({ file, environment: { PAGODA_SERVER_PORT: "2" }, sets: ["kv.tokens=64", "models.0.aliases=[a1, a2]"] });
    expect(code).toBe(0);
    expect(printed).toBe(formatConfig(expected));
    expect(loadConfig({ fileText: printed })).toEqual(expected);
  });

  test("check looks at the file alone", async () => {
    const good = fileWith("good.yaml", "server: { port: 1 }\n");
    expect(await pagoda(["config", "check", good], { PAGODA_NOPE: "1" })).toMatchObject({ code: 0, failures: [] });
    const bad = fileWith("bad.yaml", "server: { prt: 1 }\nkv: { type: f32 }\n");
    const { code, failures } = await pagoda(["config", "check", bad]);
    expect(code).toBe(2);
    expect(failures[0]).toContain(`${bad}:1`);
    expect(failures[0]).toContain(`${bad}:2`);
  });
});
