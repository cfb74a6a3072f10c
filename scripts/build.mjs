// Compiles src/ to dist/, but only when something changed since the last time: `npm start` must not wait for a compiler that has nothing to do.
// Plain JavaScript, because it runs before anything is compiled.
import { spawnSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("..", import.meta.url));
const dist = join(root, "dist");
const stamp = join(dist, ".built-from");

/** Compiles when needed, saying so on stderr. False when the compiler found errors, which it has then printed. */
export function buildIfOutdated() {
  const current = sources();
  const built = existsSync(stamp) ? readFileSync(stamp, "utf8").split("\n") : [];
  if (current.join("\n") === built.join("\n")) return true;
  // What a removed source left behind must not stay in dist/.
  const names = new Set(current.map(nameOf));
  if (built.some((line) => !names.has(nameOf(line)))) rmSync(dist, { recursive: true, force: true });
  process.stderr.write("building dist/ ...\n");
  const compiler = createRequire(import.meta.url).resolve("typescript/bin/tsc");
  const { status } = spawnSync(process.execPath, [compiler, "-p", "tsconfig.json", "--noEmitOnError"], { cwd: root, stdio: ["ignore", 2, 2] });
  if (status !== 0) return false;
  writeFileSync(stamp, current.join("\n"));
  return true;
}

/** One line for each file that the build depends on: name, time and size. */
function sources() {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => join("src", file));
  return ["tsconfig.json", "package-lock.json", ...files.sort()].map((file) => {
    const { mtimeMs, size } = statSync(join(root, file));
    return `${file} ${mtimeMs} ${size}`;
  });
}

function nameOf(line) {
  return line.split(" ")[0];
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !buildIfOutdated()) process.exitCode = 1;
