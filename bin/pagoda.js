#!/usr/bin/env node
import { existsSync } from "node:fs";

const args = process.argv.slice(2);
const built = new URL("../dist/cli/", import.meta.url);
// Only a clone of the repository has sources to build; an installed package comes built.
const builder = new URL("../scripts/build.mjs", import.meta.url);
if (!existsSync(new URL("main.js", built)) && existsSync(builder)) {
  const { buildIfOutdated } = await import(builder.href);
  if (!buildIfOutdated()) process.exit(1);
}
if (args[0] === "serve") {
  // Other commands keep the usual end: a check that was interrupted must not look like one that succeeded.
  const { endOnSignal } = await import(new URL("stop-signal.js", built).href);
  endOnSignal();
}
const { main } = await import(new URL("main.js", built).href);
await main(args);
