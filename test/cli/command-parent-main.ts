/** A test that has started a command, as it were: passes on the command's pid and goes on until it is killed. */
import { runNode } from "./command.js";

const command = runNode(["--eval", "console.log('running'); setInterval(() => {}, 1000);"]);
await command.printed(/running/);
process.send?.({ pid: command.process.pid });
