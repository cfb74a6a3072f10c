/** Ends this process together with its parent, even while it is stuck in native code: an engine must never be left behind. */
import { Worker } from "node:worker_threads";
import koffi from "koffi";
import { prepareNativeCalls } from "../llama/native-calls.js";

// From linux/prctl.h and signal.h; the same on every architecture that Node runs on.
const PR_SET_PDEATHSIG = 1;
const SIGKILL = 9;

const pollMs = 1_000;

/** Ends this process when its IPC channel to the parent closes, as soon as the event loop runs. Call once, at the very start. */
export function endWithChannel(): void {
  process.on("disconnect", endNow);
}

/**
 * Ends this process with its parent even while the event loop is stuck. `parentPid`: who is expected to be the parent; it may be gone already.
 * Call once, at the very start: an engine may get stuck as well while it loads.
 */
export function endWithParent(parentPid: number): void {
  if (process.platform !== "linux" || !askKernel()) watchFromThread(parentPid);
  // The parent may have died before the kernel was asked.
  if (process.ppid !== parentPid) endNow();
}

/** No exit handlers and no destructors: native threads may be in the midst of anything. */
function endNow(): void {
  process.kill(process.pid, "SIGKILL");
}

/** Has the kernel kill this process when the thread that forked it ends. */
function askKernel(): boolean {
  prepareNativeCalls(); // this is the first of them
  try {
    const prctl = koffi.load(null).func("int prctl(int option, ulong value, ulong, ulong, ulong)");
    return prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) === 0;
  } catch {
    return false; // a libc without it: the thread watches instead
  }
}

/** A thread of its own goes on when the main thread does not. It does not keep the process alive. */
export function watchFromThread(parentPid: number): Worker {
  const watch = `
    const parentPid = ${parentPid};
    const isGone = () => {
      if (process.ppid !== parentPid) return true;
      try {
        process.kill(parentPid, 0);
        return false;
      } catch (error) {
        return error.code === "ESRCH";
      }
    };
    setInterval(() => isGone() && process.kill(process.pid, "SIGKILL"), ${pollMs});
  `;
  const thread = new Worker(watch, { eval: true, execArgv: [] });
  thread.unref();
  return thread;
}
