/** A random model of the llama architecture: its metadata, its tensors, and weights that keep activations at sane sizes through any number of layers. */
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { float32Entry, type GgufEntry, type GgufTensor, stringEntry, type TensorType, uint32Entry, weightCount } from "./gguf-format.js";
import { writeGguf } from "./gguf-writer.js";
import { type WeightPlan, weightBytes } from "./random-weights.js";
import type { ModelShape } from "./shapes.js";
import type { Vocabulary } from "./vocabularies.js";

/** Types that matrices can have; norms are always f32. */
export type MatrixType = Extract<TensorType, "q8_0" | "f16">;

export interface RandomModel {
  readonly name: string;
  readonly shape: ModelShape;
  readonly vocabulary: Vocabulary;
  readonly type: MatrixType;
  readonly seed: number;
  /** Whether one matrix serves both as embedding and as output. */
  readonly tieEmbeddings: boolean;
}

export interface PlannedTensor extends GgufTensor {
  readonly weights: WeightPlan;
}

const fileTypes: Readonly<Record<MatrixType, number>> = { f16: 1, q8_0: 7 };
const normEpsilon = 1e-5;

// Spreads. A matrix of deviation 1/sqrt(rows' length) keeps the size of what it is applied to. The two matrices of a layer that add to the residual
// stream are smaller by sqrt(2 * layers), so that all of them together add a vector of size 1. The embedding is far smaller than that:
// with tied matrices a large one would make every token predict itself. The last norm's gain brings the logits back to a deviation as trained models have it.
const embeddingDeviation = 0.02;
const logitDeviation = 3;
/** Root mean square of silu(g) * u for independent standard normal g and u. */
const gatedSize = 0.6;

/** Writes the model's file, and its folder if missing. Returns the bytes written and the number of weights. */
export function writeRandomModel(path: string, model: RandomModel): { readonly bytes: number; readonly parameters: number } {
  const tensors = tensorsOf(model);
  const planOf = new Map<GgufTensor, WeightPlan>(tensors.map((tensor) => [tensor, tensor.weights]));
  mkdirSync(dirname(path), { recursive: true });
  const bytes = writeGguf(path, metadataOf(model), tensors, (tensor) => weightBytes(tensor, planOf.get(tensor) ?? { kind: "constant", value: 0 }, model.seed));
  return { bytes, parameters: tensors.reduce((sum, tensor) => sum + weightCount(tensor), 0) };
}

function metadataOf({ name, shape, vocabulary, type }: RandomModel): GgufEntry[] {
  return [
    stringEntry("general.architecture", "llama"),
    stringEntry("general.name", name),
    uint32Entry("general.file_type", fileTypes[type]),
    uint32Entry("general.quantization_version", 2),
    uint32Entry("llama.vocab_size", vocabulary.tokens),
    uint32Entry("llama.context_length", shape.contextTokens),
    uint32Entry("llama.embedding_length", shape.width),
    uint32Entry("llama.block_count", shape.layers),
    uint32Entry("llama.feed_forward_length", shape.feedForward),
    uint32Entry("llama.attention.head_count", shape.heads),
    uint32Entry("llama.attention.head_count_kv", shape.kvHeads),
    uint32Entry("llama.rope.dimension_count", shape.width / shape.heads),
    float32Entry("llama.rope.freq_base", 100_000),
    float32Entry("llama.attention.layer_norm_rms_epsilon", normEpsilon),
    ...vocabulary.entries,
  ];
}

/** All tensors in the order of the file. */
export function tensorsOf(model: RandomModel): PlannedTensor[] {
  const { shape, vocabulary, type, tieEmbeddings } = model;
  const embedding = matrix("token_embd.weight", shape.width, vocabulary.tokens, type, embeddingDeviation);
  const output = matrix("output.weight", shape.width, vocabulary.tokens, type, embeddingDeviation);
  const lastGain = logitDeviation / (embeddingDeviation * Math.sqrt(shape.width));
  const layers = Array.from({ length: shape.layers }, (_, layer) => layerTensors(layer, shape, type));
  return [embedding, ...layers.flat(), norm("output_norm.weight", shape.width, lastGain), ...(tieEmbeddings ? [] : [output])];
}

function layerTensors(layer: number, shape: ModelShape, type: MatrixType): PlannedTensor[] {
  const { width, feedForward } = shape;
  const kvWidth = (width / shape.heads) * shape.kvHeads;
  const keep = 1 / Math.sqrt(width);
  const toResidual = 1 / Math.sqrt(2 * shape.layers);
  const named = (part: string): string => `blk.${layer}.${part}.weight`;
  return [
    norm(named("attn_norm"), width, 1),
    matrix(named("attn_q"), width, width, type, keep),
    matrix(named("attn_k"), width, kvWidth, type, keep),
    matrix(named("attn_v"), width, kvWidth, type, keep),
    matrix(named("attn_output"), width, width, type, keep * toResidual),
    norm(named("ffn_norm"), width, 1),
    matrix(named("ffn_gate"), width, feedForward, type, keep),
    matrix(named("ffn_up"), width, feedForward, type, keep),
    matrix(named("ffn_down"), feedForward, width, type, toResidual / (gatedSize * Math.sqrt(feedForward))),
  ];
}

function matrix(name: string, rowWeights: number, rows: number, type: MatrixType, deviation: number): PlannedTensor {
  return { name, dimensions: [rowWeights, rows], type, weights: { kind: "random", deviation } };
}

function norm(name: string, width: number, value: number): PlannedTensor {
  return { name, dimensions: [width], type: "f32", weights: { kind: "constant", value } };
}
