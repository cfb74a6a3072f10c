/**
 * Proves the layouts, constants and function signatures in src/engine/llama against the headers of the llama.cpp release that node-llama-cpp distributes:
 * a C program generated from them is compiled against those headers and prints what is really there. Exits with 1 on any difference.
 */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import koffi, { type TypeObject } from "koffi";
import { constants } from "../src/engine/llama/constants.js";
import { nativeSignatures, type Signature } from "../src/engine/llama/functions.js";
import { pinnedLlamaVersion } from "../src/engine/llama/libraries.js";
import { layouts } from "../src/engine/llama/structs.js";
import { cacheDirectory, ensureLlamaSource } from "./llama-source.js";

interface Fact {
  readonly name: string;
  readonly expression: string;
  readonly ours: number;
}

const facts: readonly Fact[] = [
  ...layouts.flatMap(({ cName, type, fields }) => [
    { name: `sizeof ${cName}`, expression: `sizeof(struct ${cName})`, ours: koffi.sizeof(type) },
    ...fields.map((field) => ({ name: `${cName}.${field}`, expression: `offsetof(struct ${cName}, ${field})`, ours: koffi.offsetof(type, field) })),
    ...fields.map((field) => ({
      name: `sizeof ${cName}.${field}`,
      expression: `sizeof(((struct ${cName} *) 0)->${field})`,
      ours: type.members?.[field]?.type.size ?? -1,
    })),
  ]),
  ...Object.entries(constants).map(([name, ours]) => ({ name, expression: name, ours })),
];

function main(): void {
  const { directory, release } = ensureLlamaSource();
  const theirs = runProbe(directory);
  let differences = release === `v${pinnedLlamaVersion}` ? 0 : 1;
  console.log(`llama.cpp ${release}; Pagoda is written for v${pinnedLlamaVersion}\n`);
  for (const [index, { name, ours }] of facts.entries()) {
    const found = theirs[index];
    if (found !== ours) differences++;
    console.log(`${found === ours ? "  ok  " : "DIFFER"} ${name.padEnd(48)} ${String(ours).padStart(5)} ${found === ours ? "" : `in the headers: ${found}`}`);
  }
  console.log(
    `\n${facts.length} sizes, offsets and constants, ${Object.keys(nativeSignatures).length} function signatures: ${differences === 0 ? "all equal" : `${differences} differ`}`,
  );
  if (differences > 0) process.exitCode = 1;
}

/** Compiles and runs the program; its output is one number per fact. A wrong signature is a compiler error, which is shown. */
function runProbe(tree: string): number[] {
  const source = join(cacheDirectory, "verify-abi.c");
  const program = join(cacheDirectory, "verify-abi");
  writeFileSync(source, probeSource());
  const includes = ["include", "ggml/include"].flatMap((folder) => ["-isystem", join(tree, folder)]);
  const strict = ["-Wconversion", "-Wsign-conversion", "-Wint-conversion", "-Wincompatible-pointer-types", "-Werror", "-Wno-unused"];
  // Only compiled, never linked or called: the functions need no library here.
  execFileSync("cc", ["-std=c11", ...includes, ...strict, "-fsyntax-only", source], { stdio: "inherit" });
  execFileSync("cc", ["-std=c11", ...includes, "-DPROBE", "-o", program, source], { stdio: "inherit" });
  return execFileSync(program, { encoding: "utf8" }).trim().split("\n").map(Number);
}

function probeSource(): string {
  const prints = facts.map(({ expression }) => `  printf("%lld\\n", (long long) (${expression}));`);
  const calls = Object.entries(nativeSignatures).map(([name, signature]) => callOf(name, signature));
  return [
    "#include <stddef.h>",
    "#include <stdint.h>",
    "#include <stdio.h>",
    '#include "llama.h"',
    '#include "ggml-backend.h"',
    "#ifndef PROBE",
    ...calls,
    "#endif",
    `int main(void) {\n${prints.join("\n")}\n  return 0;\n}`,
    "",
  ].join("\n");
}

/** A call with arguments of the declared types: another number of them, or a narrowing or a pointer where a number belongs, does not compile. */
function callOf(name: string, [result, parameters]: Signature): string {
  const resultType = cTypeOf(result);
  const declarations = parameters.map((parameter, index) => `${cTypeOf(parameter)} p${index}`).join(", ") || "void";
  const call = `${name}(${parameters.map((_, index) => `p${index}`).join(", ")})`;
  const body = resultType === "void" ? `${call};` : result.primitive === "Pointer" ? `return (void *) ${call};` : `return ${call};`;
  return `static ${resultType} call_${name}(${declarations}) { ${body} }`;
}

const cTypes: Readonly<Record<string, string>> = {
  Void: "void",
  Bool: "bool",
  Int32: "int32_t",
  UInt32: "uint32_t",
  Int64: "int64_t",
  UInt64: "uint64_t",
  Float32: "float",
  String: "const char *",
};

function cTypeOf(type: TypeObject): string {
  if (type.primitive === "Record") return `struct ${layouts.find((layout) => layout.type === type)?.cName}`;
  // Out-parameters are koffi's markers without a kind; they are pointers as well.
  return cTypes[type.primitive] ?? "void *";
}

main();
