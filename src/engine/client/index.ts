/** What the gateway holds of its engines. */
export type { EngineClientOptions, LocalEngineClient } from "./create-engine-client.js";
export { createEngineClient } from "./create-engine-client.js";
export type * from "./engine-client.js";
export type { EngineLog } from "./engine-process.js";
