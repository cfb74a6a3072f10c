import { describe, expect, test } from "vitest";
import { readCgroupLimits } from "./cgroup.js";

function limitsOf(files: Readonly<Record<string, string>>) {
  return readCgroupLimits((path) => files[path]);
}

describe("version 2", () => {
  test("the tightest limit of the group and those above it counts, caches as free", () => {
    const limits = limitsOf({
      "/proc/self/cgroup": "0::/kube/pod/box\n",
      "/sys/fs/cgroup/kube/pod/box/cpu.max": "400000 100000\n",
      "/sys/fs/cgroup/kube/pod/cpu.max": "250000 100000\n",
      "/sys/fs/cgroup/kube/cpu.max": "max 100000\n",
      "/sys/fs/cgroup/kube/pod/box/memory.max": "1000\n",
      "/sys/fs/cgroup/kube/pod/box/memory.current": "700\n",
      "/sys/fs/cgroup/kube/pod/box/memory.stat": "anon 500\ninactive_file 150\nfile 200\n",
      "/sys/fs/cgroup/kube/pod/memory.max": "max\n",
      "/sys/fs/cgroup/kube/pod/memory.current": "700\n",
    });
    expect(limits).toEqual({ cores: 2.5, availableBytes: 450 });
  });

  test("inside a container the mount's root is the group, whatever path the host gives", () => {
    const limits = limitsOf({ "/proc/self/cgroup": "0::/../../host/path\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n" });
    expect(limits).toEqual({ cores: 1.5, availableBytes: undefined });
  });
});

describe("version 1", () => {
  test("each controller has a group of its own", () => {
    const limits = limitsOf({
      "/proc/self/cgroup": "4:memory:/jobs/7\n2:cpu,cpuacct:/jobs\n",
      "/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us": "300000\n",
      "/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
      "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
      "/sys/fs/cgroup/memory/jobs/7/memory.limit_in_bytes": "5000\n",
      "/sys/fs/cgroup/memory/jobs/7/memory.usage_in_bytes": "4000\n",
      "/sys/fs/cgroup/memory/jobs/7/memory.stat": "inactive_file 1\ntotal_inactive_file 500\n",
    });
    expect(limits).toEqual({ cores: 3, availableBytes: 1500 });
  });
});

test.each<Record<string, string>>([{}, { "/proc/self/cgroup": "garbage\n0::/\n" }, { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "what\n" }])(
  "no limits are known where nothing is said: %j",
  (files) => {
    expect(limitsOf(files)).toEqual({ cores: undefined, availableBytes: undefined });
  },
);
