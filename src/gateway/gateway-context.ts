/** What the gateway's routes share. */
import type { Config } from "../config/schema.js";
import type { Logger, Metrics } from "../observability/index.js";
import type { Exchanges } from "./exchange.js";
import type { ServedModel } from "./served-model.js";

export interface GatewayContext {
  readonly config: Pick<Config, "server" | "sampling" | "observability">;
  readonly models: readonly ServedModel[];
  readonly metrics: Metrics;
  readonly log: Logger;
  readonly exchanges: Exchanges;
  /** The server takes no new work any more. */
  readonly isClosing: () => boolean;
}
