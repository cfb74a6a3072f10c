/** A small gateway process whose engine gets stuck while it loads: says the engine's pid when that is so, and waits to be killed. */
import { createEngineClient } from "../../src/engine/client/index.js";
import { quietLog, simulatedEntry, simulatedSettings } from "./harness.js";

const client = createEngineClient({
  modelName: "simulated",
  settings: simulatedSettings({ behaviour: "stuckLoad=yes" }),
  replicas: 1,
  engineWaitMs: 30_000,
  log: {
    ...quietLog,
    debug(_, line) {
      if (line === "stuck while loading") process.send?.({ pid: client.pids()[0] });
    },
  },
  entry: simulatedEntry,
});
