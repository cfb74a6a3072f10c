/** What other folders use of observability. */
export type { EngineFigures } from "./engine-figures.js";
export { createLogger, type Logger, type LoggerOptions } from "./logger.js";
export { createMetrics, type Metrics, type MetricsOptions } from "./metrics.js";
export type { FinishedChoice, FinishedReason, ModelMetrics } from "./model-metrics.js";
