/** Describes the machine that a benchmark ran on, so that figures are not quoted without it. */
import { availableParallelism, cpus, loadavg, totalmem } from "node:os";

/** One line: processor, cores, memory, platform, Node's version and how busy the machine was when it began. */
export function describeMachine(): string {
  const processor = cpus()[0]?.model.trim() ?? "unknown processor";
  const memory = `${(totalmem() / 2 ** 30).toFixed(1)} GiB`;
  const load = process.platform === "win32" ? "" : `, load average ${loadavg()[0]?.toFixed(2)}`;
  return `${processor}, ${availableParallelism()} cores, ${memory}, ${process.platform}-${process.arch}, Node ${process.versions.node}${load}`;
}
