/** Turns the engine benchmark's rounds into tables. */
import type { EngineJob, OwnRound, StepBreakdown, Throughput } from "./engine-job.js";
import type { MemoryFigures } from "./memory.js";
import { medianOf } from "./statistics.js";
import { formatTable } from "./table.js";

/** One side's rounds; Pagoda's come first. */
export interface Side {
  readonly name: string;
  readonly rounds: readonly (readonly Throughput[])[];
}

const phases = [
  ["prefill", "prefill"],
  ["decode", "decode"],
  ["decodeLessSampling", "decode less sampling"],
] as const;

/**
 * One line for each sequence count and phase: medians over the rounds, their spread, and Pagoda in proportion to each peer,
 * by the medians and by the best rounds. A disturbance only ever slows a round down, so on a machine with other work the best ones tell more.
 */
export function throughputTable(job: EngineJob, own: Side, peers: readonly Side[]): string {
  const heading = ["tokens/s", own.name, ...peers.flatMap((peer) => [peer.name, "ratio", "best"])];
  const rows = phases.flatMap(([phase, title]) =>
    job.sequenceCounts.map((sequences) => {
      const of = (side: Side): number[] => side.rounds.flatMap((round) => round.filter((entry) => entry.sequences === sequences).map((entry) => entry[phase]));
      const ownSamples = of(own);
      const peerCells = peers.flatMap((peer) => {
        const samples = of(peer);
        const ratios = [medianOf(ownSamples) / medianOf(samples), Math.max(...ownSamples) / Math.max(...samples)];
        return [withSpread(samples), ...ratios.map((ratio) => ratio.toFixed(3))];
      });
      return [`${title}, ${sequences} sequence${sequences === 1 ? "" : "s"}`, withSpread(ownSamples), ...peerCells];
    }),
  );
  return formatTable(heading, rows);
}

/** Where decode steps spend their time: medians over the rounds of each round's medians. */
export function breakdownTable(job: EngineJob, rounds: readonly OwnRound[]): string {
  const rows = job.sequenceCounts.map((sequences) => {
    const entries = rounds.flatMap((round) => round.breakdowns.filter((entry) => entry.sequences === sequences));
    const median = (part: keyof Omit<StepBreakdown, "sequences">): number => medianOf(entries.map((entry) => entry[part]));
    const share = medianOf(entries.map((entry) => entry.outsideMs / entry.stepMs));
    const parts = (["stepMs", "decodeMs", "samplingMs", "outsideMs"] as const).map((part) => median(part).toFixed(3));
    return [String(sequences), ...parts, `${(100 * share).toFixed(2)} %`];
  });
  return formatTable(["sequences", "step ms", "llama_decode ms", "sampling ms", "outside ms", "outside share"], rows);
}

/** Resident memory; `beyond` is what the engine takes besides its model and its cache. */
export function memoryTable(figures: MemoryFigures, round: Pick<OwnRound, "modelBytes" | "kvBytes">): string {
  const beyond = (bytes: number): string => mebibytes(bytes - round.modelBytes - round.kvBytes);
  const rows = [
    ["gateway, idle", mebibytes(figures.gatewayIdleBytes), ""],
    ["engine, idle", mebibytes(figures.engineIdleBytes), beyond(figures.engineIdleBytes)],
    [`gateway, after ${figures.requests} requests`, mebibytes(figures.gatewayAfterWorkBytes), ""],
    [`engine, after ${figures.requests} requests`, mebibytes(figures.engineAfterWorkBytes), beyond(figures.engineAfterWorkBytes)],
  ];
  const sizes = `model ${mebibytes(round.modelBytes)} MiB, KV cache ${mebibytes(round.kvBytes)} MiB`;
  return `${formatTable(["MiB resident", "in all", "beyond model and KV"], rows)}\n(${sizes})`;
}

function withSpread(samples: readonly number[]): string {
  const digits = (value: number): string => (value < 100 ? value.toFixed(1) : value.toFixed(0));
  return `${digits(medianOf(samples))} [${digits(Math.min(...samples))}-${digits(Math.max(...samples))}]`;
}

function mebibytes(bytes: number): string {
  return (bytes / 2 ** 20).toFixed(0);
}
