import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, describe, expect, test } from "vitest";
import { type Command, runNode, runPagoda } from "./command.js";

const folder = mkdtempSync(join(tmpdir(), "pagoda-serve-"));
const running: Command[] = [];
afterEach(async () => {
  for (const command of running.splice(0)) {
    command.process.kill("SIGKILL");
    await command.ended;
  }
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function pagoda(...args: readonly string[]): Command {
  const command = runPagoda(...args);
  running.push(command);
  return command;
}

/** A server with the built-in model on a free port, ready, and its address. */
async function startServer(...args: readonly string[]): Promise<{ readonly command: Command; readonly url: string }> {
  const command = pagoda("serve", "--port", "0", "--set", "engine.threads=1", "--set", "observability.logs.level=warn", ...args);
  const [, url = ""] = await command.printed(/^pagoda ready on (http:\/\/127\.0\.0\.1:\d+)\ntry: curl \S+ .*\n/);
  return { command, url };
}

const tinyModel = readFileSync(fileURLToPath(new URL("../../models/pagoda-tiny/pagoda-tiny.gguf", import.meta.url)));

/** The built-in model's file with another architecture's name, in the keys as well. */
function otherArchitecture(): Buffer {
  const bytes = Buffer.from(tinyModel);
  for (let at = bytes.indexOf("llama"); at >= 0 && at < 40_000; at = bytes.indexOf("llama", at + 1)) bytes.write("xlama", at);
  return bytes;
}

function chat(url: string, body: object): Promise<Response> {
  const messages = [{ role: "user", content: "Hello!" }];
  return fetch(`${url}/v1/chat/completions`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ messages, ...body }) });
}

describe("pagoda serve", () => {
  test("answers as soon as it says that it is ready, and ends with code 0 after a signal", async () => {
    const { command, url } = await startServer();
    expect((await fetch(`${url}/ready`)).status).toBe(200);
    const answer = (await (await chat(url, { temperature: 0, max_tokens: 50 })).json()) as {
      choices: { message: { content: string } }[];
      system_fingerprint: string;
    };
    expect(answer.choices[0]?.message.content).not.toBe("");
    expect(answer.system_fingerprint).toMatch(/^b/);
    command.process.kill("SIGINT");
    expect(await command.ended).toMatchObject({ code: 0, signal: null, stderr: "" });
  });

  test("finishes a stream that is under way when the signal comes", async () => {
    const { command, url } = await startServer();
    const response = await chat(url, { stream: true, max_tokens: 150, ignore_eos: true });
    const chunks: string[] = [];
    const decoder = new TextDecoder();
    for await (const bytes of response.body ?? []) {
      if (chunks.length === 0) command.process.kill("SIGTERM");
      chunks.push(decoder.decode(bytes, { stream: true }));
    }
    expect(chunks.join("")).toMatch(/"finish_reason":"length"[\s\S]*data: \[DONE\]\n\n$/);
    expect(await command.ended).toMatchObject({ code: 0, signal: null });
  });

  test("on a port that is in use is one clear line and exit code 1", async () => {
    const other = createServer().listen(0, "127.0.0.1");
    await new Promise((resolve) => other.once("listening", resolve));
    const { port } = other.address() as AddressInfo;
    const { code, stdout, stderr } = await pagoda("serve", "--port", String(port)).ended;
    other.close();
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toBe(`pagoda: Port ${port} on 127.0.0.1 is in use by another program. Choose another with --port.\n`);
  });

  test.each<{ what: string; make: (path: string) => void; line: RegExp }>([
    { what: "no file", make: () => undefined, line: /cannot be read: there is no such file/ },
    { what: "a folder", make: (path) => mkdirSync(path), line: /cannot be read: it is not a file/ },
    { what: "an empty file", make: (path) => writeFileSync(path, ""), line: /not a GGUF file that can be loaded: it is empty/ },
    {
      what: "a text",
      make: (path) => writeFileSync(path, "This is a letter, not a model."),
      line: /not a GGUF file that can be loaded: it begins with "This"/,
    },
    { what: "half a download", make: (path) => writeFileSync(path, tinyModel.subarray(0, 100_000)), line: /is truncated or damaged: it has 100000 bytes/ },
    { what: "an architecture that is unknown", make: (path) => writeFileSync(path, otherArchitecture()), line: /not supported: .*architecture.*xlama/ },
  ])("of $what is one clear line and exit code 1", async ({ what, make, line }) => {
    const path = join(folder, `${what}.gguf`);
    make(path);
    const { code, stdout, stderr } = await pagoda("serve", "--port", "0", "--model", path).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^pagoda: [^\n]+\n$/);
    expect(stderr).toContain(path);
    expect(stderr).toMatch(line);
  });

  test.each([
    { what: "does not exist", template: undefined, line: /neither a builtin template .* nor a file/ },
    { what: "does not parse", template: "{% for message in messages %}{{ message.content", line: /does not parse/ },
  ])("with a template that $what is one clear line and exit code 1", async ({ what, template, line }) => {
    const path = join(folder, `${what}.jinja`);
    if (template !== undefined) writeFileSync(path, template);
    const { code, stdout, stderr } = await pagoda("serve", "--port", "0", "--chat-template", path).ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^pagoda: [^\n]+\n$/);
    expect(stderr).toContain(path);
    expect(stderr).toMatch(line);
  });

  test("with a template that does not show what users write warns of it, once", async () => {
    const path = join(folder, "blind.jinja");
    writeFileSync(path, "{{ bos_token }}Hello.");
    const { command } = await startServer("--chat-template", path);
    command.process.kill("SIGINT");
    const { code, stderr } = await command.ended;
    expect(code).toBe(0);
    expect(stderr.match(/\n/g)).toHaveLength(1);
    expect(JSON.parse(stderr)).toMatchObject({ level: "warn", model: "pagoda-tiny", template: path, msg: expect.stringContaining("chat template") });
  });
});

test("a second signal ends at once, with a shell's exit code for that signal", async () => {
  const script = `import { listenForStop } from "./dist/cli/stop-signal.js";
    setInterval(() => {}, 1000);
    void listenForStop().received.then((signal) => console.log("first", signal));
    console.log("listening");`;
  const command = runNode(["--input-type=module", "--eval", script]);
  running.push(command);
  await command.printed(/listening/);
  command.process.kill("SIGINT");
  await command.printed(/first SIGINT/);
  command.process.kill("SIGTERM");
  expect(await command.ended).toMatchObject({ code: 143, signal: null });
});
