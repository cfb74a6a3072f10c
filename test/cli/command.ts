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

const endWithParent = new URL("./end-with-parent.mjs", import.meta.url).href;

/** Starts `node ARGS`, without the caller's own configuration, in the root of the repository. It ends with this process, however this one ends. */
export function runNode(args: readonly string[]): Command {
  return start(process.execPath, ["--import", endWithParent, ...args]);
}

/** Starts the same in a shell that waits for its end, as npm does; `process` is the shell. */
export function runNodeInShell(args: readonly string[], variables: Readonly<Record<string, string>>): Command {
  return start("sh", ["-c", '"$0" "$@"; exit $?', process.execPath, "--import", endWithParent, ...args], variables);
}

function start(program: string, args: readonly string[], variables: Readonly<Record<string, string>> = {}): Command {
  const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(PAGODA_|npm_)/.test(name)));
  const child = spawn(program, args, { cwd: root, env: { ...own, ...variables }, stdio: ["ignore", "pipe", "pipe", "pipe"] });
  const { stdout: output, stderr: errors } = child;
  if (output === null || errors === null) throw new Error("The command's output is not piped.");
  let stdout = "";
  let stderr = "";
  output.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
  });
  errors.setEncoding("utf8").on("data", (text: string) => {
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
      output.on("data", look);
      look();
      void ended.then(({ code }) => reject(new Error(`ended with code ${code} before it printed ${pattern}: ${stdout}${stderr}`)));
    });
  return { process: child, ended, printed };
}

/** Starts `pagoda ARGS`. */
export function runPagoda(...args: readonly string[]): Command {
  return runNode(["bin/pagoda.js", ...args]);
}
