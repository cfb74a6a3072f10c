/** What a client can have an engine do, and what it must know to survive the engine: a generation or a tokenization. */
import { fromWireError, type PagodaError, toWireError } from "../../errors.js";
import type { ChoiceEvent, FromEngine, GenerateRequest, TextSegment, ToEngine } from "../protocol.js";
import { type CrashRecord, cleanRecord } from "./crash-policy.js";
import type { Generation } from "./engine-client.js";
import { createEventQueue } from "./event-queue.js";
import { applyEvent, cancelChoices, continuation, createProgress, endingEvents, isFinished, settledChoices } from "./request-progress.js";

/** What a message meant to the work it was for. */
export type Reception = "nothing" | "progressed" | "ended";

/** One thing to be done by whichever engine can do it. */
export interface Work {
  record: CrashRecord;
  /** Its client has been told that it will be done; from then on it waits for an engine as long as it takes. */
  readonly isTaken: boolean;
  readonly hasEnded: boolean;
  /** What an engine must be sent to do the rest of it. */
  toMessage(wireId: number): ToEngine;
  /** Takes in news from the engine. */
  receive(news: ChoiceEvent | FromEngine): Reception;
  /** Ends what needs no engine any more; called when the work has lost its engine. */
  settle(): void;
  fail(error: PagodaError): void;
}

export interface GenerationWork extends Work {
  readonly request: GenerateRequest;
  /** Resolves when an engine has taken the request. */
  readonly generation: Promise<Generation>;
  /** Nobody waits for the engine's yes any more; without effect after it. */
  abandon(reason: unknown): void;
  /** Marks choices as not wanted and returns those that an engine may still be working on. */
  cancel(index: number | undefined): readonly number[];
}

interface Deferred<Value> {
  readonly promise: Promise<Value>;
  readonly resolve: (value: Value) => void;
  readonly reject: (reason: unknown) => void;
}

function deferred<Value>(): Deferred<Value> {
  let settle: Pick<Deferred<Value>, "resolve" | "reject"> | undefined;
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject };
  });
  return { promise, ...(settle as unknown as Pick<Deferred<Value>, "resolve" | "reject">) };
}

/** The id by which engines know a request: never used twice, whatever ids clients choose. */
export function wireRequestId(request: GenerateRequest, wireId: number): string {
  return `${request.id}#${wireId}`;
}

/**
 * A request as work. Its events wait in memory until the consumer takes them: at most one for each token plus one for each choice,
 * so `maxTokens` times the choices bounds them, however slow the consumer is.
 * `onCancel` is called when the consumer cancels, with the choices concerned.
 */
export function createGenerationWork(request: GenerateRequest, onCancel: (work: GenerationWork, index: number | undefined) => void): GenerationWork {
  const progress = createProgress(request);
  const queue = createEventQueue<ChoiceEvent>(() => onCancel(work, undefined));
  const { promise, resolve, reject } = deferred<Generation>();
  let isTaken = false;

  const deliver = (event: ChoiceEvent): ChoiceEvent | undefined => {
    const news = applyEvent(progress, event);
    if (news !== undefined) queue.push(news);
    if (isFinished(progress)) queue.end();
    return news;
  };

  const work: GenerationWork = {
    request,
    record: cleanRecord,
    generation: promise,
    get isTaken() {
      return isTaken;
    },
    get hasEnded() {
      return isFinished(progress);
    },
    toMessage(wireId) {
      const rest = continuation(progress, wireRequestId(request, wireId));
      return { type: "submit", request: isTaken ? { ...rest, isResubmission: true } : rest };
    },
    receive(news) {
      if ("index" in news) {
        const event = deliver(news);
        if (isFinished(progress)) return "ended";
        return event?.token === undefined ? "nothing" : "progressed";
      }
      if (news.type === "refused") {
        work.fail(fromWireError(news.error));
        return "ended";
      }
      if (news.type === "accepted" && !isTaken) {
        isTaken = true;
        resolve({ events: queue.events, cancel: (index) => onCancel(work, index) });
      }
      return "nothing";
    },
    abandon: reject,
    cancel: (index) => cancelChoices(progress, index),
    settle() {
      for (const event of settledChoices(progress)) deliver(event);
    },
    fail(error) {
      for (const event of endingEvents(progress, { finish: "error", error: toWireError(error) })) deliver(event);
      reject(error); // without effect once the request is taken
    },
  };
  return work;
}

export interface TokenizeWork extends Work {
  readonly tokens: Promise<readonly (readonly number[])[]>;
  /** Nobody waits for the answer any more. */
  abandon(reason: unknown): void;
}

export function createTokenizeWork(segments: readonly TextSegment[], addSpecial: boolean): TokenizeWork {
  const { promise, resolve, reject } = deferred<readonly (readonly number[])[]>();
  let hasEnded = false;
  let isAbandoned = false;
  const end = (): Reception => {
    hasEnded = true;
    return "ended";
  };

  return {
    record: cleanRecord,
    tokens: promise,
    isTaken: false,
    get hasEnded() {
      return hasEnded;
    },
    toMessage: (wireId) => ({ type: "tokenize", id: wireId, segments, addSpecial }),
    receive(news) {
      if (!("type" in news)) return "nothing";
      if (news.type === "tokenized") resolve(news.tokens);
      else if (news.type === "tokenizeFailed") reject(fromWireError(news.error));
      else return "nothing";
      return end();
    },
    settle() {
      if (isAbandoned) end();
    },
    fail(error) {
      reject(error);
      end();
    },
    abandon(reason) {
      isAbandoned = true;
      reject(reason);
    },
  };
}
