/** A process that is stuck in code which never returns to the event loop, as an engine may be in native code. The second argument says what watches its parent. */
import { once } from "node:events";
import { endWithParent, watchFromThread } from "../../src/engine/runner/parent-watch.js";

const parentPid = Number(process.argv[2]);
if (process.argv[3] === "thread") {
  const thread = watchFromThread(parentPid);
  thread.ref();
  await once(thread, "online");
} else endWithParent(parentPid);
process.send?.({ pid: process.pid }, undefined, undefined, () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0));
