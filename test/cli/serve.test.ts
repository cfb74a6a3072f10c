import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
async function startServer(): Promise<{ readonly command: Command; readonly url: string }> {
  const command = pagoda("serve", "--port", "0", "--set", "engine.threads=1", "--set", "observability.logs.level=warn");
  const [, url = ""] = await command.printed(/^pagoda ready on (http:\/\/127\.0\.0\.1:\d+)\ntry: curl \S+ .*\n/);
  return { command, url };
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

  test("of a file that is no GGUF is one clear line and exit code 1", async () => {
    const file = join(folder, "not.gguf");
    writeFileSync(file, "This is a letter, not a model.");
    const { code, stdout, stderr } = await pagoda("serve", "--port", "0", "--model", file, "--set", "observability.logs.level=silent").ended;
    expect({ code, stdout }).toEqual({ code: 1, stdout: "" });
    expect(stderr).toMatch(/^pagoda: .*not\.gguf.*\n$/);
  });

  test("of a template that does not exist is one clear line and exit code 1", async () => {
    const { code, stderr } = await pagoda("serve", "--port", "0", "--chat-template", "nonexistent", "--set", "observability.logs.level=silent").ended;
    expect(code).toBe(1);
    expect(stderr).toMatch(/^pagoda: .*nonexistent.*\n$/);
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
