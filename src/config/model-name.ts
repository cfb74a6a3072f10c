/** The name of a model that was given none. */

/** The file's name without folder, `.gguf` and the number of a split file's part; for a built-in model its own name. */
export function modelNameOf(source: string): string {
  const lastPart =
    source
      .replace(/^builtin:/, "")
      .split(/[\\/]/)
      .pop() ?? source;
  const bare = lastPart.replace(/\.gguf$/i, "").replace(/-\d{5}-of-\d{5}$/, "");
  return bare === "" ? source : bare.replace(/\s+/g, "-");
}
