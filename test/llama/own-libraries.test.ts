import { mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { openLlama } from "../../src/engine/llama/index.js";
import { bundledLibraries, pinnedLlamaVersion } from "../../src/engine/llama/libraries.js";

// In a file of its own, because a process opens the libraries once.
test.skipIf(process.platform === "win32")("a user's own build is opened by its plain names", async () => {
  const own = mkdtempSync(join(tmpdir(), "pagoda-own-libraries-"));
  try {
    const { folder } = bundledLibraries().core;
    for (const file of readdirSync(folder)) symlinkSync(join(folder, file), join(own, file.replace(/(\.metal)?\.v[\d.]+(?=\.(so|dylib)$)/, "")));
    const llama = await openLlama({ backend: "auto", libraries: own, log: () => {} });
    expect(llama.version.replace("-dev", "")).toBe(pinnedLlamaVersion);
    llama.close();
  } finally {
    rmSync(own, { recursive: true });
  }
});
