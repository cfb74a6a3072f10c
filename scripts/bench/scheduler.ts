/** The command line of `npm run bench:scheduler`: what planning and booking a step costs, and how the cost grows with the running sequences. */
import { parseArgs } from "node:util";
import { describeMachine } from "./machine.js";
import { type KvLayout, type LoadResult, measureLoad, type Workload } from "./scheduler-load.js";
import { medianOf, quantileOf } from "./statistics.js";
import { formatTable } from "./table.js";

const sequenceCounts = [16, 64, 128, 256];
const workloads: readonly Workload[] = ["decode", "churn"];
const layouts: readonly KvLayout[] = ["unified", "streams"];

const usage = `Measures what the scheduler costs: plan and commit of one step together, in microseconds, with ${sequenceCounts.join(", ")} running sequences.
No model and no engine: the clock is simulated and tokens are made up.

Usage: npm run bench:scheduler -- [--steps N]

Loads:
  decode   every sequence is past its prompt: one row of one token for each
  churn    answers of 32 to 96 tokens; for each that ends a new request comes, half of its prompt shared with all others

Options:
  --steps N   measured steps for each figure (default 2000)
  --help      this text

"growth" is the median in proportion to the one with ${sequenceCounts[0]} sequences, divided by the growth of the sequences: 1 is linear, under 1 is better.`;

interface Measurement {
  readonly workload: Workload;
  readonly layout: KvLayout;
  readonly sequences: number;
  readonly result: LoadResult;
}

function measureAll(steps: number): Measurement[] {
  // One run that does not count lets the compiler settle, so that the smallest load does not pay for it.
  for (const workload of workloads) for (const layout of layouts) measureLoad({ workload, layout, sequences: 64, steps: 300 });
  return workloads.flatMap((workload) =>
    layouts.flatMap((layout) =>
      sequenceCounts.map((sequences) => ({ workload, layout, sequences, result: measureLoad({ workload, layout, sequences, steps }) })),
    ),
  );
}

function describe(measurements: readonly Measurement[]): string {
  const rows = measurements.map(({ workload, layout, sequences, result }) => {
    const median = medianOf(result.stepMicroseconds);
    const first = measurements.find((other) => other.workload === workload && other.layout === layout);
    const growth = first === undefined ? Number.NaN : median / medianOf(first.result.stepMicroseconds) / (sequences / first.sequences);
    return [
      `${workload}, ${layout}`,
      String(sequences),
      result.meanRows.toFixed(0),
      result.meanRowTokens.toFixed(0),
      median.toFixed(1),
      quantileOf(result.stepMicroseconds, 0.99).toFixed(1),
      growth.toFixed(2),
    ];
  });
  return formatTable(["load, layout", "sequences", "rows", "tokens", "median us", "p99 us", "growth"], rows);
}

function stepsOf(text: string): number {
  const steps = Number(text);
  if (!Number.isInteger(steps) || steps < 100 || steps > 5000) throw new Error(`--steps takes a whole number from 100 to 5000, not '${text}'.`);
  return steps;
}

/** Runs the command line. Returns the exit code: 0 measured, 2 wrong usage. */
function main(parameters: readonly string[]): number {
  let steps: number;
  try {
    const { values } = parseArgs({ args: [...parameters], options: { steps: { type: "string", default: "2000" }, help: { type: "boolean", short: "h" } } });
    if (values.help) {
      console.log(usage);
      return 0;
    }
    steps = stepsOf(values.steps);
  } catch (error) {
    console.error(`bench:scheduler: ${(error as Error).message}\nTry --help.`);
    return 2;
  }
  console.log(`${describeMachine()}\n\n${describe(measureAll(steps))}`);
  return 0;
}

process.exitCode = main(process.argv.slice(2));
