/** The configuration: its schema, where its values come from, and how it is shown. */
export { type ConfigSources, loadConfig } from "./load.js";
export { modelNameOf } from "./model-name.js";
export { formatConfig } from "./print.js";
export { configReference } from "./reference.js";
export type { Config, EngineConfig, KvConfig, ModelConfig, ObservabilityConfig, SamplingConfig, SchedulerConfig, ServerConfig } from "./schema.js";
export { defaultModelSource } from "./schema.js";
export type { ServeFlags } from "./set-source.js";
