/** Reads what all files of a model say together, and checks that they belong together. */
import { invalidGguf, modelUnsupported } from "../errors.js";
import { type GgufHeader, readGgufHeader } from "./gguf-header.js";
import { type GgufStructure, readGgufStructure } from "./gguf-reader.js";
import { partPaths } from "./source.js";

/** The header of a model's only or first file, and what all its files add up to. */
export interface GgufModel extends GgufHeader {
  /** Bytes of the tensors in all files. */
  readonly weightBytes: number;
}

/** What is kept in GGUF files beside models; their names often differ by a word only. */
const otherKinds = new Map([
  ["adapter", "an adapter (LoRA)"],
  ["mmproj", "the projector of a multimodal model"],
]);

/**
 * Reads the headers of a model's files, given any of them; no tensor data. Throws what `readGgufHeader` throws, of whichever file is at fault,
 * `invalid_gguf` when the files are not the parts of one model, and `model_unsupported` for what is not a model.
 */
export function readGgufModel(path: string): GgufModel {
  const [first = path, ...others] = partPaths(path);
  const header = readGgufHeader(first);
  const other = otherKinds.get(header.kind);
  if (other !== undefined) throw modelUnsupported({ path, reason: `the file holds ${other}, not a model.` });
  const parts = [header, ...others.map(readGgufStructure)];
  parts.forEach((part, index) => {
    checkPlace(part, index, parts.length);
  });
  checkTensorCount(parts);
  return { ...header, weightBytes: sum(parts, ({ tensorBytes }) => tensorBytes) };
}

/** Part 2 and all later ones have no metadata but this. */
function checkPlace({ path, metadata }: GgufStructure, index: number, count: number): void {
  const statedIndex = metadata.get("split.no") ?? 0;
  const statedCount = metadata.get("split.count") ?? 1;
  // The number 0 is what some writers state of a model in one file.
  if (statedIndex === index && (statedCount === count || (statedCount === 0 && count === 1))) return;
  const name = count === 1 ? "a model in one file" : `part ${index + 1} of ${count}`;
  throw invalidGguf({ path, reason: `by its name it is ${name}, but it says that it is part ${Number(statedIndex) + 1} of ${Number(statedCount)}` });
}

function checkTensorCount(parts: readonly GgufStructure[]): void {
  const stated = parts[0]?.metadata.get("split.tensors.count");
  const found = sum(parts, ({ tensorCount }) => tensorCount);
  if (parts.length === 1 || stated === undefined || stated === found) return;
  throw invalidGguf({ path: parts[0]?.path ?? "", reason: `it says that its parts have ${Number(stated)} tensors, but they have ${found}` });
}

function sum(parts: readonly GgufStructure[], figure: (part: GgufStructure) => number): number {
  return parts.reduce((total, part) => total + figure(part), 0);
}
