/** Composes the server: engines, gateway, metrics and log, from start to graceful end. */
import type { Config } from "../config/index.js";
import { addressInUse, addressRefused } from "../errors.js";
import { createGateway, type Gateway } from "../gateway/index.js";
import { createLogger, createMetrics } from "../observability/index.js";
import { greeting } from "./greeting.js";
import { packageVersion } from "./package-version.js";
import { findModelFiles, type StartedModel, startModel } from "./start-model.js";
import { listenForStop } from "./stop-signal.js";
import type { Terminal } from "./terminal.js";

/**
 * Serves until SIGTERM or SIGINT, then finishes running answers within `server.shutdownGrace`.
 * @throws PagodaError when a model cannot be loaded or the address cannot be listened on; everything that was started has ended by then.
 */
export async function serve(config: Config, terminal: Terminal): Promise<void> {
  const found = config.models.map(findModelFiles);
  const log = createLogger(config.observability.logs);
  const metrics = createMetrics({ version: packageVersion() });
  const stop = listenForStop();
  const options = { metrics, log, engineWaitMs: config.server.engineWait, machineShare: 1 / found.length };
  const models = found.map((model) => startModel(model, options));
  const gateway = createGateway({ config, models: models.map(({ served }) => served), metrics, log });
  let graceMs = 0;
  try {
    const port = await listen(gateway, config.server);
    const untilStopped = Promise.race([stop.received, firstFailure(models)]);
    const name = await Promise.race([firstReady(models), untilStopped.then(() => undefined)]);
    if (name !== undefined) terminal.print(greeting(config.server.host, port, name));
    log.info({ signal: await untilStopped }, "shutting down");
    graceMs = config.server.shutdownGrace;
  } finally {
    await gateway.close(graceMs);
    await Promise.all(models.map(({ served }) => served.client.close(0)));
    stop.release();
  }
}

/** The port that is listened on, which the system chose if 0 was configured. */
async function listen(gateway: Gateway, { host, port }: Config["server"]): Promise<number> {
  try {
    await gateway.listen();
  } catch (cause) {
    const reason = cause instanceof Error && "code" in cause ? String(cause.code) : String(cause);
    throw reason === "EADDRINUSE" ? addressInUse({ host, port }, { cause }) : addressRefused({ host, port, reason }, { cause });
  }
  const address = gateway.app.server.address();
  return typeof address === "object" && address !== null ? address.port : port;
}

/** The name of the first model that can answer; pending for ever when none ever can. */
function firstReady(models: readonly StartedModel[]): Promise<string> {
  return new Promise((resolve) => {
    for (const { served, loaded } of models) {
      loaded.then(
        () => resolve(served.name),
        () => undefined, // `firstFailure` tells of it
      );
    }
  });
}

/** Rejects with the first failure of a model to load; never resolves. */
function firstFailure(models: readonly StartedModel[]): Promise<never> {
  return new Promise((_, reject) => {
    for (const { loaded } of models) loaded.catch(reject);
  });
}
