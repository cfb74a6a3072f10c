/** Starts the stuck process, passes on its pid, and waits to be killed. */
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

const child = fork(fileURLToPath(new URL("./stuck-main.ts", import.meta.url)), [String(process.pid), process.argv[2] ?? ""], { execArgv: ["--import", "tsx"] });
child.on("message", (message) => process.send?.(message));
