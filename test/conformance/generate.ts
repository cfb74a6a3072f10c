/** Runs requests through scheduler and executor until all have ended. */

import type { Executor, SequenceStart } from "../../src/engine/executor/executor.js";
import { findBreaches } from "../../src/kv-cache/invariants.js";
import type { SchedulerOptions } from "../../src/scheduler/options.js";
import { createScheduler } from "../../src/scheduler/scheduler.js";
import { type FinishReason, isIdle } from "../../src/scheduler/step-plan.js";

export interface Job {
  readonly id: string;
  readonly prompt: readonly number[];
  readonly maxTokens: number;
  readonly choices?: number;
  /** Step at which it arrives. */
  readonly step?: number;
  /** Step at which it is cancelled. */
  readonly cancelAt?: number;
  /** What it has generated already. */
  readonly output?: readonly number[];
  readonly sampling?: SequenceStart["sampling"];
  readonly seed?: number;
}

export interface Answer {
  readonly tokens: number[];
  finish: FinishReason | undefined;
  cachedTokens: number;
}

export interface Run {
  /** By sequence: `id/0`, `id/1`... */
  readonly answers: Map<string, Answer>;
  readonly preemptions: number;
  readonly moves: Readonly<Record<"trim" | "share" | "copy", number>>;
  readonly pagesUsed: number;
}

export async function generate(executor: Executor, options: SchedulerOptions, jobs: readonly Job[]): Promise<Run> {
  const scheduler = createScheduler(options);
  const answers = new Map<string, Answer>();
  const moves = { trim: 0, share: 0, copy: 0 };
  let preemptions = 0;
  for (let step = 0; ; step++) {
    for (const job of jobs) {
      if ((job.step ?? 0) === step) begin(job);
      if (job.cancelAt === step) scheduler.cancel(`${job.id}/0`);
    }
    const plan = scheduler.plan();
    if (isIdle(plan)) {
      if (jobs.every((job) => (job.step ?? 0) <= step)) break;
      continue;
    }
    preemptions += plan.preempted.length;
    for (const move of plan.moves) moves[move.kind]++;
    const outcome = await executor.execute(plan);
    for (const event of scheduler.commit(plan, outcome, step)) {
      const answer = answers.get(event.sequence) as Answer;
      if (event.token !== undefined) answer.tokens.push(event.token);
      if (event.started !== undefined) answer.cachedTokens = event.started.cachedTokens;
      answer.finish = event.finish;
      if (event.error !== undefined) throw new Error(`${event.sequence}: ${event.error.message}`);
      if (event.finish !== undefined) executor.end(event.sequence);
    }
    const breaches = findBreaches(scheduler.state.kv);
    if (breaches.length > 0) throw new Error(breaches.join("; "));
  }
  return { answers, preemptions, moves, pagesUsed: scheduler.stats().pagesUsed };

  function begin({ id, prompt, maxTokens, choices = 1, output = [], sampling = { temperature: 0 }, seed = 0 }: Job): void {
    const sequences = Array.from({ length: choices }, (_, index) => ({ id: `${id}/${index}`, outputTokens: output }));
    const promptTokens = Int32Array.from(prompt);
    for (const [index, sequence] of sequences.entries()) {
      answers.set(sequence.id, { tokens: [], finish: undefined, cachedTokens: 0 });
      executor.begin({ sequence: sequence.id, sampling, seed: seed + index, ignoreEndOfGeneration: false, promptTokens, outputTokens: output });
    }
    const refusal = scheduler.submit({ id, promptTokens, sequences, maxTokens, salt: "", ignoreEndOfGeneration: false }, 0);
    if (refusal !== undefined) throw new Error(`${id} was refused: ${refusal.kind}`);
  }
}
