/** What an engine process runs. */
import { loadLlamaEngine } from "./load-llama-engine.js";
import { runEngineProcess } from "./run-engine-process.js";

runEngineProcess(loadLlamaEngine);
