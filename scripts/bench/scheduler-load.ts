/** Drives a scheduler without an engine: the clock is simulated, every row that asks for a token gets a made-up one. */
import type { KvGeometry } from "../../src/kv-cache/geometry.js";
import { createScheduler, type Scheduler } from "../../src/scheduler/scheduler.js";
import type { StepOutcome, StepPlan } from "../../src/scheduler/step-plan.js";

/** `decode`: every sequence is past its prompt and stays. `churn`: answers are short, and for each that ends a new request comes. */
export type Workload = "decode" | "churn";
export type KvLayout = "unified" | "streams";

export interface LoadOptions {
  readonly workload: Workload;
  readonly layout: KvLayout;
  readonly sequences: number;
  /** Steps to measure, after those that bring the load to its steady state. */
  readonly steps: number;
}

export interface LoadResult {
  /** Time of `plan` and `commit` together, for each step, in microseconds. */
  readonly stepMicroseconds: readonly number[];
  readonly meanRows: number;
  readonly meanRowTokens: number;
}

const pageTokens = 32;
const contextTokens = 8192;
const promptTokens = 256;
const sharedPromptTokens = 128;
/** Answers of different lengths, so that they do not all begin and end in the same steps. */
const churnAnswerTokens = { least: 32, most: 96 };
const simulatedStepMs = 20;

/** Runs one load to its end. Throws when the scheduler refuses a request, loses one, or plans nothing. */
export function measureLoad(options: LoadOptions): LoadResult {
  const { workload, sequences, steps } = options;
  const scheduler = createScheduler({
    maxSequences: sequences,
    maxBatchTokens: Math.max(512, 4 * sequences),
    maxQueuedRequests: 2 * sequences,
    maxQueuedTokens: Number.MAX_SAFE_INTEGER,
    contextTokens,
    sharePrefixes: true,
    kv: geometryOf(options),
  });
  const load = createLoad(scheduler, sequences, workload === "decode" ? { least: contextTokens, most: contextTokens } : churnAnswerTokens);
  const warmUpSteps = workload === "decode" ? Math.ceil((sequences * promptTokens) / 256) + 200 : 4 * churnAnswerTokens.most;
  if (workload === "decode" && warmUpSteps + steps + promptTokens > contextTokens) throw new RangeError("The answers would end before the measurement does.");
  for (let step = 0; step < warmUpSteps; step++) load.step();
  if (workload === "decode" && scheduler.stats().running !== sequences) throw new Error(`Only ${scheduler.stats().running} of ${sequences} sequences run.`);
  const measured = Array.from({ length: steps }, () => load.step());
  const mean = (of: (step: StepCost) => number): number => measured.reduce((sum, step) => sum + of(step), 0) / measured.length;
  return {
    stepMicroseconds: measured.map((step) => step.microseconds),
    meanRows: mean((step) => step.rows),
    meanRowTokens: mean((step) => step.tokens),
  };
}

interface StepCost {
  readonly microseconds: number;
  readonly rows: number;
  readonly tokens: number;
}

interface Range {
  readonly least: number;
  readonly most: number;
}

function createLoad(scheduler: Scheduler, sequences: number, answerTokens: Range): { step(): StepCost } {
  const random = tokenSource();
  const sharedPrompt = Int32Array.from({ length: sharedPromptTokens }, random);
  let nowMs = 0;
  let submitted = 0;

  function submitOne(): void {
    const prompt = Int32Array.from({ length: promptTokens }, (_, i) => sharedPrompt[i] ?? random());
    const id = `request-${submitted++}`;
    const maxTokens = answerTokens.least + (random() % (answerTokens.most - answerTokens.least + 1));
    const refusal = scheduler.submit(
      { id, promptTokens: prompt, sequences: [{ id: `${id}/0`, outputTokens: [] }], maxTokens, salt: "", ignoreEndOfGeneration: true },
      nowMs,
    );
    if (refusal !== undefined) throw new Error(`A request was refused: ${JSON.stringify(refusal)}`);
  }

  for (let i = 0; i < sequences; i++) submitOne();
  return {
    step() {
      nowMs += simulatedStepMs;
      const began = performance.now();
      const plan = scheduler.plan();
      const planned = performance.now();
      if (plan.rows.length === 0) throw new Error("The scheduler has requests, but plans no row.");
      const outcome = madeUpOutcome(plan, random);
      const executed = performance.now();
      const events = scheduler.commit(plan, outcome, nowMs);
      const committed = performance.now();
      for (const event of events) if (event.finish !== undefined) submitOne();
      const tokens = plan.rows.reduce((sum, row) => sum + row.tokens.length, 0);
      return { microseconds: (planned - began + committed - executed) * 1000, rows: plan.rows.length, tokens };
    },
  };
}

function madeUpOutcome(plan: StepPlan, random: () => number): StepOutcome {
  return {
    results: plan.rows.map((row) => (row.logits === "last" ? { kind: "sampled", token: random(), isEndOfGeneration: false } : { kind: "computed" })),
  };
}

/** Enough room for every sequence at the length that it reaches: preemption is not what is measured here. */
function geometryOf({ layout, sequences }: LoadOptions): KvGeometry {
  const pagesPerSequence = contextTokens / pageTokens;
  const slots = Array.from({ length: sequences }, (_, slot) => slot);
  const arenas = layout === "unified" ? [{ pages: pagesPerSequence * sequences, slots }] : slots.map((slot) => ({ pages: pagesPerSequence, slots: [slot] }));
  return { pageTokens, arenas, canTrim: true };
}

/** Token ids of a 152k vocabulary, the same in every run (a linear congruence). */
function tokenSource(): () => number {
  let state = 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % 151_936;
  };
}
