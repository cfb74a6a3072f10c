import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { processGone } from "../engine/harness.js";
import { runNode } from "./command.js";

test("a command that a test has started ends with the test, even when that is killed", async () => {
  const parent = fork(fileURLToPath(new URL("./command-parent-main.ts", import.meta.url)), [], { execArgv: ["--import", "tsx"] });
  const [{ pid }] = (await once(parent, "message")) as [{ pid: number }];
  parent.kill("SIGKILL");
  await processGone(pid);
});

test("a command that has nothing left to do ends by itself", async () => {
  expect(await runNode(["--eval", ""]).ended).toMatchObject({ code: 0, stdout: "", stderr: "" });
});
