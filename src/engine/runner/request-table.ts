/** Translates between the protocol's requests and choices and the scheduler's sequences, and tells the executor which of them begin and end. */
import { asPagodaError, contextTooLong, invalidRequest, type PagodaError, queueFull } from "../../errors.js";
import type { Scheduler } from "../../scheduler/scheduler.js";
import type { Refusal, SequenceEvent, SequenceId } from "../../scheduler/step-plan.js";
import type { Executor } from "../executor/executor.js";
import type { ChoiceEvent, GenerateRequest } from "../protocol.js";

export interface RequestTable {
  /** Queues a request, or says why not; a refused request leaves nothing behind. */
  submit(request: GenerateRequest, nowMs: number): PagodaError | undefined;
  /** Harmless for a choice that has ended. */
  cancel(request: string, index: number): void;
  /** A step's news in the protocol's terms; what has finished is forgotten. */
  translate(events: readonly SequenceEvent[]): ChoiceEvent[];
  /** Choices that have not ended. */
  readonly size: number;
}

interface ChoiceKey {
  readonly request: string;
  readonly index: number;
}

function sequenceId({ request, index }: ChoiceKey): SequenceId {
  return `${request}/${index}`;
}

export function createRequestTable(scheduler: Scheduler, executor: Executor): RequestTable {
  const choices = new Map<SequenceId, ChoiceKey>();

  /** Prepares the sampling of every choice, or of none. */
  const beginAll = (request: GenerateRequest, promptTokens: Int32Array): void => {
    const begun: SequenceId[] = [];
    const { sampling, topLogprobs, ignoreEndOfGeneration } = request;
    try {
      for (const { index, seed, outputTokens } of request.choices) {
        const sequence = sequenceId({ request: request.id, index });
        executor.begin({ sequence, sampling, seed, promptTokens, outputTokens, ignoreEndOfGeneration, ...(topLogprobs === undefined ? {} : { topLogprobs }) });
        begun.push(sequence);
      }
    } catch (error) {
      for (const sequence of begun) executor.end(sequence);
      throw error;
    }
  };

  return {
    get size() {
      return choices.size;
    },
    submit(request, nowMs) {
      const promptTokens = Int32Array.from(request.promptTokens);
      const sequences = request.choices.map(({ index, outputTokens }) => ({ id: sequenceId({ request: request.id, index }), outputTokens }));
      try {
        beginAll(request, promptTokens);
      } catch (error) {
        return asPagodaError(error);
      }
      const { id, maxTokens, salt, ignoreEndOfGeneration, isResubmission = false } = request;
      const refusal = scheduler.submit({ id, promptTokens, sequences, maxTokens, salt, ignoreEndOfGeneration, isResubmission }, nowMs);
      if (refusal !== undefined) {
        for (const sequence of sequences) executor.end(sequence.id);
        return refusalError(refusal);
      }
      for (const { index } of request.choices) choices.set(sequenceId({ request: id, index }), { request: id, index });
      return undefined;
    },
    cancel: (request, index) => scheduler.cancel(sequenceId({ request, index })),
    translate: (events) =>
      events.map(({ sequence, ...news }) => {
        const choice = choices.get(sequence);
        if (choice === undefined) throw new RangeError(`The scheduler reports on '${sequence}', which was never submitted or has ended.`);
        if (news.finish !== undefined) {
          choices.delete(sequence);
          executor.end(sequence);
        }
        return { ...choice, ...news };
      }),
  };
}

function refusalError(refusal: Refusal): PagodaError {
  switch (refusal.kind) {
    case "queueFull":
      return queueFull(refusal, { retryAfterSeconds: refusal.retryAfterSeconds });
    case "neverFits":
      return contextTooLong(refusal, { param: "messages", details: { n_prompt_tokens: refusal.promptTokens, n_ctx: refusal.contextTokens } });
    case "emptyPrompt":
      return invalidRequest({ message: "The prompt has no tokens." }, { param: "messages" });
  }
}
