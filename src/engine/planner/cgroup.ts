/** Reads what a Linux control group allows this process: cores and memory, versions 1 and 2. Files come through a function, so tests need no machine. */

/** The text of a file, or undefined when there is none or it cannot be read. */
export type ReadText = (path: string) => string | undefined;

export interface CgroupLimits {
  /** CPU time per time; undefined for no limit. */
  readonly cores: number | undefined;
  /** What is left of the memory limit, counting file caches as free; undefined for no limit. */
  readonly availableBytes: number | undefined;
}

/** The tightest limits of the process's own groups and all groups above them. */
export function readCgroupLimits(read: ReadText): CgroupLimits {
  const groups = parseMembership(read("/proc/self/cgroup") ?? "");
  const cores = [
    ...folders("/sys/fs/cgroup", groups.get("")).map((folder) => quotaV2(read(`${folder}/cpu.max`))),
    ...folders("/sys/fs/cgroup/cpu", groups.get("cpu")).map((folder) => quotaV1(read(`${folder}/cpu.cfs_quota_us`), read(`${folder}/cpu.cfs_period_us`))),
  ];
  const bytes = [
    ...folders("/sys/fs/cgroup", groups.get("")).map((folder) =>
      leftOf(read(`${folder}/memory.max`), read(`${folder}/memory.current`), read(`${folder}/memory.stat`), "inactive_file"),
    ),
    ...folders("/sys/fs/cgroup/memory", groups.get("memory")).map((folder) =>
      leftOf(read(`${folder}/memory.limit_in_bytes`), read(`${folder}/memory.usage_in_bytes`), read(`${folder}/memory.stat`), "total_inactive_file"),
    ),
  ];
  return { cores: smallest(cores), availableBytes: smallest(bytes) };
}

/** Path of the process's group by controller; version 2's single group under the empty name. */
function parseMembership(text: string): ReadonlyMap<string, string> {
  const groups = new Map<string, string>();
  for (const line of text.split("\n")) {
    const [, controllers, path] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === undefined || path === undefined) continue;
    for (const controller of controllers.split(",")) groups.set(controller, path);
  }
  return groups;
}

/** The group's folder and all above it. Inside a container the path may be the host's: the mount's root is then the container's own group. */
function folders(mount: string, path: string | undefined): readonly string[] {
  if (path === undefined) return [];
  const names = path.split("/").filter((name) => name !== "" && name !== "..");
  return [mount, ...names.map((_, index) => `${mount}/${names.slice(0, index + 1).join("/")}`)];
}

function quotaV2(text: string | undefined): number | undefined {
  const [quota, period] = (text ?? "").trim().split(/\s+/);
  return ratio(quota, period);
}

function quotaV1(quota: string | undefined, period: string | undefined): number | undefined {
  return ratio(quota, period);
}

function ratio(quota: string | undefined, period: string | undefined): number | undefined {
  const cores = Number.parseInt(quota ?? "", 10) / Number.parseInt(period ?? "", 10);
  return Number.isFinite(cores) && cores > 0 ? cores : undefined;
}

function leftOf(limit: string | undefined, used: string | undefined, stat: string | undefined, cacheKey: string): number | undefined {
  const limitBytes = Number.parseInt(limit ?? "", 10);
  const usedBytes = Number.parseInt(used ?? "", 10);
  if (!Number.isFinite(limitBytes) || !Number.isFinite(usedBytes)) return undefined;
  const cacheBytes = Number(new RegExp(`^${cacheKey} (\\d+)$`, "m").exec(stat ?? "")?.[1] ?? 0);
  return Math.max(0, limitBytes - usedBytes + cacheBytes);
}

function smallest(values: readonly (number | undefined)[]): number | undefined {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : Math.min(...known);
}
