/** Numbers that GGUF files use for value, tensor and file types, as llama.cpp release v0.4.0 defines them. */

/** [name, elements in a block, bytes of a block] by tensor type number. */
const tensorTypes = new Map<number, readonly [name: string, blockElements: number, blockBytes: number]>([
  [0, ["F32", 1, 4]],
  [1, ["F16", 1, 2]],
  [2, ["Q4_0", 32, 18]],
  [3, ["Q4_1", 32, 20]],
  [6, ["Q5_0", 32, 22]],
  [7, ["Q5_1", 32, 24]],
  [8, ["Q8_0", 32, 34]],
  [9, ["Q8_1", 32, 36]],
  [10, ["Q2_K", 256, 84]],
  [11, ["Q3_K", 256, 110]],
  [12, ["Q4_K", 256, 144]],
  [13, ["Q5_K", 256, 176]],
  [14, ["Q6_K", 256, 210]],
  [15, ["Q8_K", 256, 292]],
  [16, ["IQ2_XXS", 256, 66]],
  [17, ["IQ2_XS", 256, 74]],
  [18, ["IQ3_XXS", 256, 98]],
  [19, ["IQ1_S", 256, 50]],
  [20, ["IQ4_NL", 32, 18]],
  [21, ["IQ3_S", 256, 110]],
  [22, ["IQ2_S", 256, 82]],
  [23, ["IQ4_XS", 256, 136]],
  [24, ["I8", 1, 1]],
  [25, ["I16", 1, 2]],
  [26, ["I32", 1, 4]],
  [27, ["I64", 1, 8]],
  [28, ["F64", 1, 8]],
  [29, ["IQ1_M", 256, 56]],
  [30, ["BF16", 1, 2]],
  [34, ["TQ1_0", 256, 54]],
  [35, ["TQ2_0", 256, 66]],
  [39, ["MXFP4", 32, 17]],
  [40, ["NVFP4", 64, 36]],
  [41, ["Q1_0", 128, 18]],
  [42, ["Q2_0", 64, 18]],
]);

export interface TensorType {
  readonly name: string;
  readonly blockElements: number;
  readonly blockBytes: number;
}

/** What a tensor type number means; undefined for one that this release does not know. */
export function tensorType(number: number): TensorType | undefined {
  const entry = tensorTypes.get(number);
  return entry && { name: entry[0], blockElements: entry[1], blockBytes: entry[2] };
}

const fileTypes = new Map<number, string>([
  [0, "F32"],
  [1, "F16"],
  [2, "Q4_0"],
  [3, "Q4_1"],
  [7, "Q8_0"],
  [8, "Q5_0"],
  [9, "Q5_1"],
  [10, "Q2_K"],
  [11, "Q3_K_S"],
  [12, "Q3_K_M"],
  [13, "Q3_K_L"],
  [14, "Q4_K_S"],
  [15, "Q4_K_M"],
  [16, "Q5_K_S"],
  [17, "Q5_K_M"],
  [18, "Q6_K"],
  [19, "IQ2_XXS"],
  [20, "IQ2_XS"],
  [21, "Q2_K_S"],
  [22, "IQ3_XS"],
  [23, "IQ3_XXS"],
  [24, "IQ1_S"],
  [25, "IQ4_NL"],
  [26, "IQ3_S"],
  [27, "IQ3_M"],
  [28, "IQ2_S"],
  [29, "IQ2_M"],
  [30, "IQ4_XS"],
  [31, "IQ1_M"],
  [32, "BF16"],
  [36, "TQ1_0"],
  [37, "TQ2_0"],
  [38, "MXFP4_MOE"],
  [39, "NVFP4"],
  [40, "Q1_0"],
  [41, "Q2_0"],
]);

/** Name of a `general.file_type` number, such as `Q4_K_M`; undefined for an unknown one. */
export function fileTypeName(number: number): string | undefined {
  return fileTypes.get(number);
}

/** Architectures whose memory is a state that has no positions to cut. */
const recurrentArchitectures = new Set(["mamba", "mamba2", "rwkv6", "rwkv6qwen2", "rwkv7", "arwkv7"]);

/** Architectures that mix such layers with attention. */
const hybridArchitectures = new Set([
  "jamba",
  "falcon-h1",
  "plamo2",
  "granitehybrid",
  "lfm2",
  "lfm2moe",
  "nemotron_h",
  "nemotron_h_moe",
  "qwen3next",
  "kimi-linear",
  "bailingmoe3",
  "kimi-k3",
  "qwen35",
  "qwen35moe",
  "qwen4exp",
  "deepseek4",
  "minimax-01",
]);

export type MemoryKind = "attention" | "recurrent" | "hybrid";

/** What an architecture remembers a sequence with, as far as its name tells; a loaded model knows better. */
export function memoryKind(architecture: string): MemoryKind {
  if (recurrentArchitectures.has(architecture)) return "recurrent";
  return hybridArchitectures.has(architecture) ? "hybrid" : "attention";
}
