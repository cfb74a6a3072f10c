/** What this process may use of the machine, read at the moment of the call. The one part of the planner that is not pure. */
import { readFileSync } from "node:fs";
import { availableParallelism, freemem, totalmem } from "node:os";
import { type ReadText, readCgroupLimits } from "./cgroup.js";

export interface Machine {
  /** Cores that the process may compute on: at least 1. */
  readonly cores: number;
  /** Memory that can be had without swapping, in bytes. */
  readonly availableBytes: number;
}

/** Reads the machine, the process's CPU affinity and its control groups. */
export function readMachine(): Machine {
  const limits = process.platform === "linux" ? readCgroupLimits(readText) : undefined;
  return {
    cores: allowedCores(availableParallelism(), limits?.cores),
    availableBytes: Math.min(systemAvailableBytes(readText), limits?.availableBytes ?? Number.POSITIVE_INFINITY),
  };
}

/** Whole cores: compute threads spin, so half a core more than there is makes every step wait. */
export function allowedCores(affinityCores: number, quotaCores: number | undefined): number {
  return Math.max(1, Math.min(affinityCores, Math.floor(quotaCores ?? affinityCores)));
}

/** Linux says itself what can be had; elsewhere free memory leaves out what caches would give back, so a quarter of all memory is the least assumed. */
export function systemAvailableBytes(read: ReadText): number {
  const kibibytes = /^MemAvailable:\s+(\d+) kB$/m.exec(read("/proc/meminfo") ?? "")?.[1];
  return kibibytes === undefined ? Math.max(freemem(), totalmem() / 4) : Number(kibibytes) * 1024;
}

function readText(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return undefined; // no such file on this system, which is what the caller asks about
  }
}
