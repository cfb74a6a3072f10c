/** Turns what an operator writes as a model's source into files on disk. */
import { existsSync, readdirSync, type Stats, statSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { invalidGguf, modelFileMissing, modelSourceNotServed, modelSourceUnknown } from "../errors.js";
import { fileErrorReason } from "./byte-cursor.js";

export interface ResolvedSource {
  /** Public name where the operator gives none: the file's name without `.gguf` and without the number of the part. */
  readonly name: string;
  /** Absolute path of the file to load; of a split model its first part. */
  readonly path: string;
  /** Absolute paths of all parts, one for a model in one file. */
  readonly parts: readonly string[];
  /** All parts together. */
  readonly sizeBytes: number;
  /** When the file was last changed, so the same from one start to the next. */
  readonly createdUnixSeconds: number;
  /** `tokenizer.json` in the same folder, if there is one. */
  readonly tokenizerJsonPath?: string;
}

const builtinScheme = "builtin:";
const laterSchemes = ["hf", "mlflow"];
// One letter is a Windows drive, not a scheme.
const schemePattern = /^([a-z][a-z0-9+.-]+):/i;
const partPattern = /^(.*)-(\d{5})-of-(\d{5})\.gguf$/;

/** The models that come with Pagoda. Works from `src/` and from `dist/`, which are siblings of `models/`. */
const builtinFolder = fileURLToPath(new URL("../../models/", import.meta.url));

/**
 * Finds the files of `builtin:NAME` or of a path to a GGUF file; a relative path starts at the working directory.
 * Throws `model_source_unknown`, `model_source_not_served` or `model_file_missing`. Does not open the files.
 */
export function resolveSource(source: string): ResolvedSource {
  if (source.startsWith(builtinScheme)) return describeFiles([builtinPath(source)]);
  const scheme = schemePattern.exec(source)?.[1]?.toLowerCase();
  if (scheme !== undefined && laterSchemes.includes(scheme)) throw modelSourceNotServed({ source, scheme });
  if (source === "" || (scheme !== undefined && !existsSync(source))) throw modelSourceUnknown({ source, allowed: allowedSources() });
  return describeFiles(partPaths(resolve(source)));
}

/** Names that follow `builtin:`. */
export function builtinModels(): string[] {
  return readdirSync(builtinFolder).filter((name) => existsSync(join(builtinFolder, name, `${name}.gguf`)));
}

function allowedSources(): string[] {
  return [...builtinModels().map((name) => builtinScheme + name), "a path to a .gguf file"];
}

function builtinPath(source: string): string {
  const name = source.slice(builtinScheme.length);
  if (!builtinModels().includes(name)) throw modelSourceUnknown({ source, allowed: allowedSources() });
  return join(builtinFolder, name, `${name}.gguf`);
}

/** The file of a model in one file, or all parts of a split one, whichever part was named. Throws `invalid_gguf` for a name that counts no parts. */
export function partPaths(path: string): string[] {
  const match = partPattern.exec(basename(path));
  if (match === null) return [path];
  const [, stem = "", , total = "1"] = match;
  const count = Number(total);
  if (count === 0) throw invalidGguf({ path, reason: "its name says that it is one of 0 parts" });
  const partName = (index: number) => `${stem}-${String(index + 1).padStart(5, "0")}-of-${total}.gguf`;
  return Array.from({ length: count }, (_, index) => join(dirname(path), partName(index)));
}

function describeFiles(parts: readonly string[]): ResolvedSource {
  const stats = parts.map(fileStats);
  const path = parts[0] as string;
  const tokenizerJsonPath = join(dirname(path), "tokenizer.json");
  return {
    name: publicName(path),
    path,
    parts,
    sizeBytes: stats.reduce((sum, { size }) => sum + size, 0),
    createdUnixSeconds: Math.floor(Math.max(...stats.map(({ mtimeMs }) => mtimeMs)) / 1000),
    ...(existsSync(tokenizerJsonPath) && { tokenizerJsonPath }),
  };
}

function fileStats(path: string): Stats {
  let stats: Stats;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw modelFileMissing({ path, reason: fileErrorReason(cause) }, { cause });
  }
  if (!stats.isFile()) throw modelFileMissing({ path, reason: "it is not a file; give the path of the .gguf file itself" });
  return stats;
}

function publicName(path: string): string {
  const name = basename(path);
  return partPattern.exec(name)?.[1] ?? name.replace(/\.gguf$/i, "");
}
