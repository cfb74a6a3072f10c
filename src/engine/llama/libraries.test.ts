import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { bundledLibraries, ownLibraries, pinnedLlamaVersion } from "./libraries.js";
import { requirePinnedVersion } from "./open.js";

describe("the shared libraries", () => {
  test("those of this machine are where they are looked for", () => {
    const { core, gpus } = bundledLibraries();
    for (const file of [core.base, core.ggml, core.llama]) expect(existsSync(file), file).toBe(true);
    for (const file of gpus.flatMap(({ files }) => files)) expect(existsSync(file), file).toBe(true);
  });

  test("a platform without any is named", () => {
    expect(() => bundledLibraries("plan9-mips")).toThrow(/plan9-mips/);
  });

  test("a folder without a build says which file is missing", () => {
    const folder = mkdtempSync(join(tmpdir(), "pagoda-libraries-"));
    try {
      expect(() => ownLibraries(folder)).toThrow(/ggml-base/);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test("only the pinned release is accepted, and both are named otherwise", () => {
    requirePinnedVersion(pinnedLlamaVersion, "here");
    requirePinnedVersion(`${pinnedLlamaVersion}-dev`, "here");
    for (const other of ["0.4.1", "0.5.0-dev", "", "0.4.0-rc1"]) {
      expect(() => requirePinnedVersion(other, "here"), other).toThrow(
        new RegExp(`release ${other.replaceAll(".", "\\.")}.*${pinnedLlamaVersion.replaceAll(".", "\\.")}`),
      );
    }
  });
});
