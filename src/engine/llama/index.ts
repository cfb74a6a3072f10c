/** The binding to llama.cpp: open its libraries, load a model, make a context, and compute. Nothing outside this folder knows koffi. */
export type { ContextOptions, LlamaContext } from "./context.js";
export { createContext } from "./context.js";
export { describeModel } from "./describe.js";
export { pinnedLlamaVersion } from "./libraries.js";
export type { LlamaLog, LogLevel } from "./log.js";
export type { LlamaModel, LoadOptions } from "./model.js";
export { loadModel } from "./model.js";
export type { Device, Llama, OpenOptions } from "./open.js";
export { openLlama } from "./open.js";
export { tokenize } from "./tokenize.js";
