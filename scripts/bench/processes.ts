/** What the operating system says of running processes. */
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";

/** Resident memory of a process, in bytes. Throws when it has ended. */
export function residentBytes(pid: number): number {
  if (process.platform === "linux") {
    const kibibytes = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    if (kibibytes === undefined) throw new Error(`Process ${pid} has no memory of its own any more.`);
    return Number(kibibytes) * 1024;
  }
  return Number(execFileSync("ps", ["-o", "rss=", "-p", String(pid)], { encoding: "utf8" })) * 1024;
}

/** The processes that a process has started and that still run. */
export function childrenOf(pid: number): number[] {
  const table = execFileSync("ps", ["-A", "-o", "pid=,ppid="], { encoding: "utf8" });
  return table
    .trim()
    .split("\n")
    .map((line) => line.trim().split(/\s+/).map(Number))
    .filter(([, parent]) => parent === pid)
    .map(([child]) => child as number);
}
