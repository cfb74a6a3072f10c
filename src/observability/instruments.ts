/** The instruments behind the models' metrics. */
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { counters, gauges, histograms } from "./metric-names.js";

export type Instruments = ReturnType<typeof createInstruments>;

/** Registers the instruments that all models share, each with the label `model_name`. */
export function createInstruments(registry: Registry) {
  const registers = [registry];
  const labelNames = ["model_name"] as const;
  return {
    gauges: mapValues(gauges, ([name, help]) => new Gauge({ name, help, labelNames, registers })),
    counters: mapValues(counters, ([name, help]) => new Counter({ name, help, labelNames, registers })),
    histograms: mapValues(histograms, ([name, help, buckets]) => new Histogram({ name, help, buckets: [...buckets], labelNames, registers })),
    finished: new Counter({
      name: "vllm:request_success_total",
      help: "Finished choices by how they ended: stop, length, abort or error.",
      labelNames: ["model_name", "finished_reason"] as const,
      registers,
    }),
    cacheConfig: new Gauge({
      name: "vllm:cache_config_info",
      help: "How the KV cache is made up; the value is always 1.",
      labelNames: ["model_name", "block_size", "num_gpu_blocks", "kv_layout"] as const,
      registers,
    }),
    pages: new Gauge({
      name: "pagoda_kv_pages",
      help: "Pages of the KV cache: held by running choices, kept for reuse, or free.",
      labelNames: ["model_name", "state"] as const,
      registers,
    }),
  };
}

function mapValues<Name extends string, From, To>(record: { readonly [N in Name]: From }, map: (value: From) => To): { readonly [N in Name]: To } {
  return Object.fromEntries(Object.entries<From>(record).map(([name, value]) => [name, map(value)])) as { readonly [N in Name]: To };
}
