// Loaded before a command that a test starts: ends it with the test. A test that is killed cannot end what it started, but its end of the pipe closes with it.
// A pipe of its own, since Node closes the one to stdin already when its own child ends, which may be a shell between the two.
import { Socket } from "node:net";

new Socket({ fd: 3 })
  .on("close", () => process.kill(process.pid, "SIGKILL"))
  .on("error", () => undefined)
  .resume()
  .unref(); // the command is to end by itself as it does without this
