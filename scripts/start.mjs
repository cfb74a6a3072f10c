// `npm start`: builds what is missing or outdated, then becomes `pagoda serve` with the arguments that follow `--`.
import { buildIfOutdated } from "./build.mjs";

if (buildIfOutdated()) {
  const { main } = await import("../dist/cli/main.js");
  await main(["serve", ...process.argv.slice(2)]);
} else {
  process.exitCode = 1;
}
