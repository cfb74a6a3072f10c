/** Runs the built `pagoda` command as a user does. */
import { type ChildProcess, spawn } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

export interface Command {
  readonly process: ChildProcess;
  /** Resolves with the first match in what was printed to stdout; rejects when the command ends without it. */
  printed(pattern: RegExp): Promise<RegExpExecArray>;
  /** Resolves when the command has ended and its output is complete. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: string | null; readonly stdout: string; readonly stderr: string }>;
}

/** Starts `node ARGS`, without the caller's own configuration, in the root of the repository. */
export function runNode(args: readonly string[]): Command {
  const environment = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PAGODA_")));
  const child = spawn(process.execPath, args, { cwd: root, env: environment, stdio: ["ignore", "pipe", "pipe"] });
  let stdout = "";
  let stderr = "";
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Awaited<Command["ended"]>>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const printed = (pattern: RegExp): Promise<RegExpExecArray> =>
    new Promise((resolve, reject) => {
      const look = (): void => {
        const match = pattern.exec(stdout);
        if (match !== null) resolve(match);
      };
      child.stdout.on("data", look);
      look();
      void ended.then(({ code }) => reject(new Error(`ended with code ${code} before it printed ${pattern}: ${stdout}${stderr}`)));
    });
  return { process: child, ended, printed };
}

/** Starts `pagoda ARGS`. */
export function runPagoda(...args: readonly string[]): Command {
  return runNode(["bin/pagoda.js", ...args]);
}
