/** Signals that come before a server is ready, and those that only npm hears. */
import { afterEach, expect, test } from "vitest";
import { processGone } from "../engine/harness.js";
import { type Command, runNode, runNodeInShell, runPagoda } from "./command.js";

const running: Command[] = [];
afterEach(async () => {
  for (const command of running.splice(0)) {
    command.process.kill("SIGKILL");
    await command.ended;
  }
});

function started(command: Command): Command {
  running.push(command);
  return command;
}

const smallServer = ["--port", "0", "--set", "engine.threads=1"];

/** A module that sends its process SIGTERM as soon as the command's own code begins to load. */
const signalWhileLoading = dataModule(`import { register } from "node:module";
  register(${JSON.stringify(
    dataModule(`export async function resolve(specifier, context, next) {
      if (specifier.endsWith("dist/cli/main.js")) process.kill(process.pid, "SIGTERM");
      return next(specifier, context);
    }`),
  )});`);

function dataModule(code: string): string {
  return `data:text/javascript,${encodeURIComponent(code)}`;
}

test.each([["bin/pagoda.js serve"], ["scripts/start.mjs"]])("a signal while '%s' loads its own code ends it with code 0", async (line) => {
  const command = started(runNode(["--import", signalWhileLoading, ...line.split(" "), ...smallServer]));
  expect(await command.ended).toMatchObject({ code: 0, signal: null, stdout: "" });
});

test("an interrupted check does not look like one that succeeded", async () => {
  const command = started(runNode(["--import", signalWhileLoading, "bin/pagoda.js", "config", "check", "pagoda.yaml"]));
  expect(await command.ended).toMatchObject({ code: null, signal: "SIGTERM" });
});

test("a signal while the engine starts ends both, with code 0", async () => {
  const command = started(runPagoda("serve", ...smallServer, "--set", "observability.logs.level=debug", "--set", "observability.logs.format=json"));
  const engine = await new Promise<number>((resolve, reject) => {
    let text = "";
    command.process.stderr?.on("data", (more: string) => {
      text += more;
      const line = text.split("\n").find((candidate) => candidate.includes("engine process started"));
      if (line !== undefined) resolve((JSON.parse(line) as { pid: number }).pid);
    });
    void command.ended.then(({ stderr }) => reject(new Error(`no engine was started: ${stderr}`)));
  });
  command.process.kill("SIGTERM");
  expect(await command.ended).toMatchObject({ code: 0, signal: null, stdout: "" });
  await processGone(engine);
});

test("a server that npm started ends with npm's shell, though nobody sent it a signal", async () => {
  const command = started(runNodeInShell(["scripts/start.mjs", ...smallServer], { npm_lifecycle_event: "start" }));
  const [, url = ""] = await command.printed(/^pagoda ready on (\S+)\n/);
  command.process.kill("SIGTERM");
  await command.ended; // its output ends only when the server has ended as well
  await expect(fetch(`${url}/health`)).rejects.toThrow();
});
