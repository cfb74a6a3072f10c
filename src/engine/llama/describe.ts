/** Describes a loaded model to the gateway: what it is, and its vocabulary as bytes. */
import type { ModelInfo, VocabularyInfo } from "../protocol.js";
import { constants } from "./constants.js";
import { type LlamaModel, modelNameOf } from "./model.js";

/** Everything the gateway must know of a model to work without native code. */
export function describeModel(model: LlamaModel, name: string = modelNameOf(model.path)): ModelInfo {
  const { native } = model.llama;
  const { pointer } = model;
  return {
    name,
    description: modelDescription(model),
    architecture: model.architecture,
    sizeBytes: model.sizeBytes,
    parameterCount: model.parameterCount,
    vocabularySize: model.vocabularySize,
    embeddingSize: model.embeddingSize,
    trainedContextTokens: model.trainedContextTokens,
    fileType: native.llama_ftype_name(native.llama_model_ftype(pointer)) ?? "unknown",
    chatTemplate: native.llama_model_chat_template(pointer, null) ?? undefined,
    tokens: describeVocabulary(model),
    canTrim: model.canTrim,
  };
}

function modelDescription(model: LlamaModel): string {
  const buffer = Buffer.alloc(256);
  const length = model.llama.native.llama_model_desc(model.pointer, buffer, buffer.length);
  return buffer.toString("utf8", 0, Math.max(0, Math.min(length, buffer.length - 1)));
}

const vocabularyTypes: Readonly<Record<number, VocabularyInfo["type"]>> = {
  [constants.LLAMA_VOCAB_TYPE_NONE]: "none",
  [constants.LLAMA_VOCAB_TYPE_SPM]: "spm",
  [constants.LLAMA_VOCAB_TYPE_BPE]: "bpe",
  [constants.LLAMA_VOCAB_TYPE_WPM]: "wpm",
  [constants.LLAMA_VOCAB_TYPE_UGM]: "ugm",
  [constants.LLAMA_VOCAB_TYPE_RWKV]: "rwkv",
  [constants.LLAMA_VOCAB_TYPE_PLAMO2]: "plamo2",
};

function describeVocabulary(model: LlamaModel): VocabularyInfo {
  const { native } = model.llama;
  const { vocabulary, vocabularySize } = model;
  const type = vocabularyTypes[native.llama_vocab_type(vocabulary)] ?? "other";
  const special: VocabularyInfo["special"][number][] = [];
  const lengths = Buffer.alloc(vocabularySize * 2);
  const pieces: Buffer[] = [];
  for (let id = 0; id < vocabularySize; id++) {
    const piece = tokenBytes(model, id);
    pieces.push(piece);
    lengths.writeUInt16LE(piece.length, id * 2);
    const attributes = native.llama_vocab_get_attr(vocabulary, id);
    if ((attributes & constants.LLAMA_TOKEN_ATTR_CONTROL) !== 0) {
      const lstrip = (attributes & constants.LLAMA_TOKEN_ATTR_LSTRIP) !== 0;
      const rstrip = (attributes & constants.LLAMA_TOKEN_ATTR_RSTRIP) !== 0;
      special.push({ id, text: native.llama_vocab_get_text(vocabulary, id), lstrip, rstrip });
    }
  }
  return {
    type,
    pieces: Buffer.concat(pieces).toString("base64"),
    pieceLengths: lengths.toString("base64"),
    special,
    endOfGeneration: [...model.endOfGeneration],
    bos: namedToken(model, native.llama_vocab_bos(vocabulary)),
    eos: namedToken(model, native.llama_vocab_eos(vocabulary)),
    addBos: native.llama_vocab_get_add_bos(vocabulary),
    addEos: native.llama_vocab_get_add_eos(vocabulary),
    // The library keeps this to itself; these are the key and the default that it reads.
    addSpacePrefix: (model.metadata("tokenizer.ggml.add_space_prefix") ?? String(type === "spm")) === "true",
  };
}

const pieceBuffer = Buffer.alloc(65535);

/** What a token adds to the output; control tokens add nothing. */
function tokenBytes(model: LlamaModel, token: number): Buffer {
  const length = model.llama.native.llama_token_to_piece(model.vocabulary, token, pieceBuffer, pieceBuffer.length, 0, false);
  return Buffer.from(pieceBuffer.subarray(0, Math.max(0, length)));
}

function namedToken(model: LlamaModel, id: number): { id: number; text: string } | undefined {
  return id < 0 ? undefined : { id, text: model.llama.native.llama_vocab_get_text(model.vocabulary, id) };
}
