#!/usr/bin/env node
import { existsSync } from "node:fs";

const entry = new URL("../dist/cli/main.js", import.meta.url);
// Only a clone of the repository has sources to build; an installed package comes built.
const builder = new URL("../scripts/build.mjs", import.meta.url);
if (!existsSync(entry) && existsSync(builder)) {
  const { buildIfOutdated } = await import(builder.href);
  if (!buildIfOutdated()) process.exit(1);
}
const { main } = await import(entry.href);
await main(process.argv.slice(2));
