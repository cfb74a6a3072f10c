/** What the program counts and times, and how Prometheus reads it. */
import { Counter, collectDefaultMetrics, Gauge, Registry } from "prom-client";
import { createInstruments } from "./instruments.js";
import { createModelMetrics, type ModelMetrics } from "./model-metrics.js";

export interface Metrics {
  /** The metrics of one model; the same ones for the same name. Its series exist, at zero, from this call on. */
  forModel(name: string): ModelMetrics;
  /** Counts an answered HTTP request. `route` is the route's pattern, never a path that a client chose. */
  countHttpRequest(route: string, status: number): void;
  /** Counts a stream that was ended before its answer was complete. `reason` is the code of an error. */
  countCutStream(reason: string): void;
  /** Everything in Prometheus' text format. */
  exposition(): Promise<string>;
  readonly contentType: string;
}

export interface MetricsOptions {
  readonly version: string;
  /** Leaves out the process's own figures (memory, CPU, event loop). */
  readonly withoutProcess?: boolean;
}

/** Makes a set of metrics with a registry of its own. */
export function createMetrics(options: MetricsOptions): Metrics {
  const registry = new Registry();
  const instruments = createInstruments(registry);
  const httpRequests = new Counter({
    name: "pagoda_http_requests_total",
    help: "HTTP requests by route and status; 499 is a client that left before its answer began.",
    labelNames: ["route", "status"],
    registers: [registry],
  });
  const cutStreams = new Counter({
    name: "pagoda_streams_cut_total",
    help: "Streams that were ended before their answer was complete, by the code of the reason.",
    labelNames: ["reason"],
    registers: [registry],
  });
  new Gauge({ name: "pagoda_build_info", help: "The running version; the value is always 1.", labelNames: ["version", "node"], registers: [registry] }).set(
    { version: options.version, node: process.versions.node },
    1,
  );
  if (options.withoutProcess !== true) collectDefaultMetrics({ register: registry });

  const models = new Map<string, ModelMetrics>();
  return {
    forModel(name) {
      const model = models.get(name) ?? createModelMetrics(instruments, name);
      models.set(name, model);
      return model;
    },
    countHttpRequest: (route, status) => httpRequests.inc({ route, status }),
    countCutStream: (reason) => cutStreams.inc({ reason }),
    exposition: () => registry.metrics(),
    contentType: registry.contentType,
  };
}
