/** What the gateway knows of one request: enough to take over when its engine is lost, and to pass on each piece of news once. Pure but for its own state. */
import type { ChoiceEvent, GenerateChoice, GenerateRequest } from "../protocol.js";

interface ChoiceProgress {
  readonly index: number;
  readonly seed: number;
  readonly outputTokens: number[];
  isStarted: boolean;
  isCancelled: boolean;
  isFinished: boolean;
}

export interface RequestProgress {
  readonly request: GenerateRequest;
  readonly choices: ReadonlyMap<number, ChoiceProgress>;
}

export function createProgress(request: GenerateRequest): RequestProgress {
  const choices = request.choices.map(({ index, seed, outputTokens }) => {
    return { index, seed, outputTokens: [...outputTokens], isStarted: false, isCancelled: false, isFinished: false };
  });
  return { request, choices: new Map(choices.map((choice) => [choice.index, choice])) };
}

/**
 * Books one event of the engine and returns what the consumer should see of it, under the request's own id.
 * Undefined when there is nothing new in it: a second `started` after a restart, or news of a choice that has finished.
 */
export function applyEvent(progress: RequestProgress, event: ChoiceEvent): ChoiceEvent | undefined {
  const choice = progress.choices.get(event.index);
  if (choice === undefined || choice.isFinished) return undefined;
  const { started, ...news } = event;
  const isFirstStart = started !== undefined && !choice.isStarted;
  if (event.token !== undefined) choice.outputTokens.push(event.token);
  if (started !== undefined) choice.isStarted = true;
  if (event.finish !== undefined) choice.isFinished = true;
  if (!isFirstStart && event.token === undefined && event.finish === undefined) return undefined;
  return { ...news, request: progress.request.id, ...(isFirstStart ? { started } : {}) };
}

/** Marks one choice, or all, as not wanted any more. Returns the indexes of those that were still running and wanted. */
export function cancelChoices(progress: RequestProgress, index: number | undefined): readonly number[] {
  const cancelled: number[] = [];
  for (const choice of progress.choices.values()) {
    if (choice.isFinished || choice.isCancelled || (index !== undefined && choice.index !== index)) continue;
    choice.isCancelled = true;
    cancelled.push(choice.index);
  }
  return cancelled;
}

export function isFinished(progress: RequestProgress): boolean {
  return [...progress.choices.values()].every((choice) => choice.isFinished);
}

/** Choices that no engine needs to see again, and how each ends: it was cancelled, or it has all its tokens and only its last word was lost. */
export function settledChoices(progress: RequestProgress): readonly ChoiceEvent[] {
  return [...progress.choices.values()].flatMap((choice): ChoiceEvent[] => {
    if (choice.isFinished) return [];
    const event = { request: progress.request.id, index: choice.index };
    if (choice.isCancelled) return [{ ...event, finish: "cancelled" }];
    const isFull = choice.outputTokens.length > 0 && choice.outputTokens.length >= progress.request.maxTokens;
    return isFull ? [{ ...event, finish: "length" }] : [];
  });
}

/** The choices that are not finished, as events that end them all alike. */
export function endingEvents(progress: RequestProgress, ending: Pick<ChoiceEvent, "finish" | "error">): readonly ChoiceEvent[] {
  return [...progress.choices.values()].flatMap((choice) => {
    return choice.isFinished ? [] : [{ request: progress.request.id, index: choice.index, ...ending }];
  });
}

/** The request as an engine is to see it now: its unfinished choices with the tokens they have, under the id `wireId`. */
export function continuation(progress: RequestProgress, wireId: string): GenerateRequest {
  const choices = [...progress.choices.values()].flatMap((choice): GenerateChoice[] => {
    return choice.isFinished ? [] : [{ index: choice.index, seed: choice.seed, outputTokens: choice.outputTokens }];
  });
  return { ...progress.request, id: wireId, choices };
}
