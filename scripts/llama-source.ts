/** Provides the llama.cpp tree of exactly the release whose shared libraries node-llama-cpp ships: its headers, sources and vocabularies. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";

/** The repository's root, with a trailing separator cut off. */
export const repositoryRoot = fileURLToPath(new URL("..", import.meta.url)).replace(/[/\\]$/, "");

/** Where everything that scripts fetch or build is kept, out of git. */
export const cacheDirectory = join(repositoryRoot, ".cache");

export interface LlamaSource {
  /** Absolute path of the working tree. */
  readonly directory: string;
  /** The release's name, such as `v0.4.0`. */
  readonly release: string;
  /** The commit that the tree is at. */
  readonly commit: string;
}

const packageDirectory = join(repositoryRoot, "node_modules", "node-llama-cpp", "llama");
const bundlePath = join(packageDirectory, "gitRelease.bundle");
const sourceDirectory = join(cacheDirectory, "llama.cpp");

/** The release that node-llama-cpp's libraries were built from. Throws when the package is not installed. */
export function bundledLlamaRelease(): string {
  const text = readFileSync(join(packageDirectory, "binariesGithubRelease.json"), "utf8");
  const parsed = JSON.parse(text) as { release?: unknown };
  if (typeof parsed.release !== "string") throw new Error("node-llama-cpp does not name its llama.cpp release in binariesGithubRelease.json.");
  return parsed.release;
}

/**
 * The llama.cpp tree in `.cache/llama.cpp`, cloned from node-llama-cpp's own bundle (no network) unless a tree of that commit is already there.
 * Needs git. Throws when node-llama-cpp or git is missing.
 */
export function ensureLlamaSource(): LlamaSource {
  if (!existsSync(bundlePath)) throw new Error(`${relative(repositoryRoot, bundlePath)} is missing: run npm ci first.`);
  const release = bundledLlamaRelease();
  const commit = bundleCommit();
  if (checkedOutCommit(sourceDirectory) !== commit) cloneBundle(commit);
  return { directory: sourceDirectory, release, commit };
}

function bundleCommit(): string {
  const commit = git(["bundle", "list-heads", bundlePath, "HEAD"]).split(/\s/)[0];
  if (commit === undefined || commit === "") throw new Error("node-llama-cpp's llama.cpp bundle has no HEAD.");
  return commit;
}

/** The commit of the working tree whose root is `directory`; undefined when there is none. */
function checkedOutCommit(directory: string): string | undefined {
  if (!existsSync(join(directory, ".git"))) return undefined;
  return git(["-C", directory, "rev-parse", "HEAD"]).trim();
}

/** Clones beside the final place and renames, so that an interrupted clone or another script at the same work never leaves half a tree. */
function cloneBundle(commit: string): void {
  mkdirSync(cacheDirectory, { recursive: true });
  const temporary = mkdtempSync(join(cacheDirectory, "llama.cpp-clone-"));
  try {
    git(["clone", "--quiet", bundlePath, temporary]);
    if (checkedOutCommit(sourceDirectory) === commit) return;
    rmSync(sourceDirectory, { recursive: true, force: true });
    renameSync(temporary, sourceDirectory);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function git(parameters: readonly string[]): string {
  return execFileSync("git", ["-c", "advice.detachedHead=false", ...parameters], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
}
