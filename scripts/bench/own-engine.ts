/** Measures Pagoda's engine as it runs in production: its step loop, its request table and its messages, on the job that the peer is given too. */
import type { Executor } from "../../src/engine/executor/executor.js";
import type { FromEngine, SamplingParameters } from "../../src/engine/protocol.js";
import { createRequestTable, type RequestTable } from "../../src/engine/runner/request-table.js";
import { runSteps } from "../../src/engine/runner/step-loop.js";
import { createStepReporter } from "../../src/engine/runner/step-reporter.js";
import { createWorkSignal, type WorkSignal } from "../../src/engine/runner/work-signal.js";
import type { SchedulerOptions } from "../../src/scheduler/options.js";
import { createScheduler } from "../../src/scheduler/scheduler.js";
import type { EngineJob, OwnRound, StepBreakdown, Throughput } from "./engine-job.js";
import { medianOf } from "./statistics.js";
import { type NativeTime, type RecordedStep, recordSteps, type StepRecorder } from "./step-recorder.js";

/** The peer warms up with as many. */
const warmUpTokens = 16;
const greedy: SamplingParameters = { temperature: 0 };

export interface OwnEngine {
  readonly executor: Executor;
  readonly options: SchedulerOptions;
  readonly vocabularySize: number;
  nativeTime(): NativeTime;
}

interface Bench {
  readonly requests: RequestTable;
  readonly work: WorkSignal;
  readonly recorder: StepRecorder;
  /** Resolves when all requests have ended and the loop rests. */
  untilIdle(): Promise<void>;
}

/** Runs the job once. `send` gets every message that a gateway would get. */
export async function measureOwnEngine(
  engine: OwnEngine,
  job: EngineJob,
  send: (message: FromEngine) => void,
): Promise<Pick<OwnRound, "throughputs" | "breakdowns">> {
  const recorder = recordSteps(createScheduler(engine.options), engine.executor, engine.nativeTime);
  const { scheduler, executor } = recorder;
  const requests = createRequestTable(scheduler, executor);
  const work = createWorkSignal();
  const abort = new AbortController();
  const ended = runSteps({ scheduler, executor, work, report: createStepReporter(scheduler, requests, send) }, abort.signal);
  // Whoever waits for the end of the requests also hears of a broken engine.
  const bench: Bench = { requests, work, recorder, untilIdle: () => Promise.race([recorder.idle(), ended]) };
  const random = tokenSource(engine.vocabularySize);
  await run(bench, [prompt(warmUpTokens, random)], 1);
  const throughputs: Throughput[] = [];
  const breakdowns: StepBreakdown[] = [];
  for (const sequences of job.sequenceCounts) {
    const prompts = Array.from({ length: sequences }, () => prompt(job.promptTokens, random));
    const prefill = prefillSpeed(await run(bench, prompts, 1), sequences * job.promptTokens);
    const steps = decodeSteps(await run(bench, prompts, job.contextTokens - job.promptTokens), sequences, job.outputTokens);
    throughputs.push({ sequences, prefill, ...decodeSpeeds(steps, sequences) });
    breakdowns.push(breakdown(sequences, steps));
  }
  abort.abort();
  work.notify();
  await ended;
  return { throughputs, breakdowns };
}

/** Submits all prompts at once and gives the steps that it took to end them. */
async function run(bench: Bench, prompts: readonly number[][], outputTokens: number): Promise<RecordedStep[]> {
  bench.recorder.take();
  const done = bench.untilIdle();
  for (const [index, promptTokens] of prompts.entries()) {
    const choices = [{ index: 0, seed: 1, outputTokens: [] }];
    const request = { id: `bench-${index}`, promptTokens, choices, maxTokens: outputTokens, sampling: greedy, ignoreEndOfGeneration: true, salt: "" };
    const refusal = bench.requests.submit(request, performance.now());
    if (refusal !== undefined) throw refusal;
  }
  bench.work.notify();
  await done;
  return bench.recorder.take();
}

function prefillSpeed(steps: readonly RecordedStep[], promptTokens: number): number {
  const computed = steps.reduce((sum, step) => sum + step.tokens, 0);
  if (computed < promptTokens) throw new Error(`Only ${computed} of ${promptTokens} prompt tokens were computed: part of them came out of the cache.`);
  return (1000 * promptTokens) / totalMs(steps);
}

/** The first `count` steps in which every sequence is past its prompt. */
function decodeSteps(steps: readonly RecordedStep[], sequences: number, count: number): RecordedStep[] {
  const full = steps.filter((step) => step.rows === sequences && step.tokens === sequences).slice(0, count);
  if (full.length < count) throw new Error(`Only ${full.length} of ${steps.length} steps decoded all ${sequences} sequences; ${count} are needed.`);
  return full;
}

function decodeSpeeds(steps: readonly RecordedStep[], sequences: number): Pick<Throughput, "decode" | "decodeLessSampling"> {
  const samplingMs = steps.reduce((sum, step) => sum + step.samplingMs, 0);
  const tokens = sequences * steps.length;
  return { decode: (1000 * tokens) / totalMs(steps), decodeLessSampling: (1000 * tokens) / (totalMs(steps) - samplingMs) };
}

function breakdown(sequences: number, steps: readonly RecordedStep[]): StepBreakdown {
  const median = (part: (step: RecordedStep) => number): number => medianOf(steps.map(part));
  return {
    sequences,
    stepMs: median(durationMs),
    decodeMs: median((step) => step.decodeMs),
    samplingMs: median((step) => step.samplingMs),
    outsideMs: median((step) => durationMs(step) - step.decodeMs - step.samplingMs),
  };
}

function durationMs(step: RecordedStep): number {
  return step.endedMs - step.beganMs;
}

function totalMs(steps: readonly RecordedStep[]): number {
  return steps.reduce((sum, step) => sum + durationMs(step), 0);
}

function prompt(length: number, random: () => number): number[] {
  return Array.from({ length }, random);
}

/** Token ids, the same in every round (a linear congruence). */
function tokenSource(vocabularySize: number): () => number {
  let state = 12345;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return (state >>> 8) % vocabularySize;
  };
}
