// `npm start`: builds what is missing or outdated, then becomes `pagoda serve` with the arguments that follow `--`.
import { buildIfOutdated } from "./build.mjs";

/** npm runs this in a shell, and a signal to npm may end both of them without a word to this process: then their end is the signal. */
const shell = process.env.npm_lifecycle_event === undefined ? undefined : process.ppid;
const pollMs = 200;

function isShellGone() {
  if (shell === undefined) return false;
  if (process.ppid !== shell) return true;
  try {
    process.kill(shell, 0); // Windows gives orphans no other parent
    return false;
  } catch (error) {
    return error.code === "ESRCH";
  }
}

if (buildIfOutdated()) {
  const { endOnSignal } = await import("../dist/cli/stop-signal.js");
  endOnSignal();
  const watch = setInterval(() => {
    if (!isShellGone()) return;
    clearInterval(watch);
    process.emit("SIGTERM", "SIGTERM"); // to this process's own listeners; sent for real, it would end the process at once on Windows
  }, pollMs).unref();
  const { main } = await import("../dist/cli/main.js");
  await main(["serve", ...process.argv.slice(2)]);
} else {
  process.exitCode = 1;
}
