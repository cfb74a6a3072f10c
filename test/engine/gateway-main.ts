/** A small gateway process: starts an engine, says its pid when it is ready, keeps it busy, and goes on until it is killed. */
import { createEngineClient } from "../../src/engine/client/index.js";
import { quietLog, simulatedEntry, simulatedRequest, simulatedSettings } from "./harness.js";

const client = createEngineClient({
  modelName: "simulated",
  settings: simulatedSettings({ behaviour: "stepMs=5" }),
  replicas: 1,
  engineWaitMs: 30_000,
  log: quietLog,
  entry: simulatedEntry,
});
await client.ready();
const generation = await client.submit(simulatedRequest({ id: "endless", maxTokens: 4000 }));
for await (const { token } of generation.events) {
  if (token !== undefined) process.send?.({ enginePids: client.pids() });
}
