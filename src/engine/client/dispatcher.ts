/** Gives work to engines and takes it back when one is lost: who waits, who is where, and who goes where next. */
import { engineUnavailable, type PagodaError, requestPoisonous } from "../../errors.js";
import type { ChoiceEvent, FromEngine, ToEngine } from "../protocol.js";
import { cleanRecord, judgeDeath, mayJoin, submissionOrder } from "./crash-policy.js";
import type { Work } from "./work.js";

/** What the dispatcher needs of an engine. */
export interface Engine {
  readonly isUp: boolean;
  send(message: ToEngine): void;
}

export interface Dispatcher {
  /** Sends the work to an engine, or lets it wait for one. */
  add(work: Work): void;
  /** The engine that has this work now, and the id it knows it by. */
  placeOf(work: Work): { readonly engine: Engine; readonly wireId: number } | undefined;
  /** Takes work that ended by itself out of the waiting line. */
  forget(work: Work): void;
  engineUp(): void;
  engineLost(engine: Engine): void;
  received(engine: Engine, message: FromEngine): void;
  /** Fails the work that waits for an engine and that no client has begun to read. */
  failUntaken(error: PagodaError): void;
  failAll(error: PagodaError): void;
  /** Resolves when no work is left. */
  drained(): Promise<void>;
}

export interface DispatcherOptions {
  readonly modelName: string;
  /** How long untaken work waits while no engine is up, in milliseconds. */
  readonly engineWaitMs: number;
  readonly engines: readonly Engine[];
}

/** A hint for clients: by then an engine that died by chance is usually back. */
const retryAfterSeconds = 5;

/** The work in one engine, by wire id. */
type Desk = Map<number, Work>;

/** The wire id at the end of an id that an engine knows a request by. */
function wireIdOf(request: string): number {
  return Number(request.slice(request.lastIndexOf("#") + 1));
}

export function createDispatcher({ modelName, engineWaitMs, engines }: DispatcherOptions): Dispatcher {
  const desks = new Map<Engine, Desk>(engines.map((engine) => [engine, new Map()]));
  const places = new Map<Work, { readonly engine: Engine; readonly wireId: number }>();
  const waitTimers = new Map<Work, NodeJS.Timeout>();
  const arrivals = new WeakMap<Work, number>();
  /** In the order of arrival, whatever happened to the work since. */
  let waiting: Work[] = [];
  let lastArrival = 0;
  let lastWireId = 0;
  const onDrained: (() => void)[] = [];

  const deskOf = (engine: Engine): Desk => desks.get(engine) as Desk;

  const noteEnd = (): void => {
    if (waiting.length > 0 || places.size > 0) return;
    for (const resolve of onDrained.splice(0)) resolve();
  };

  const stopWaiting = (work: Work): void => {
    clearTimeout(waitTimers.get(work));
    waitTimers.delete(work);
  };

  const line = (works: readonly Work[]): void => {
    const arrivalOf = (work: Work): number => arrivals.get(work) ?? 0;
    waiting = [...waiting, ...works].sort((a, b) => arrivalOf(a) - arrivalOf(b));
  };

  const watchWait = (work: Work): void => {
    if (work.isTaken || waitTimers.has(work)) return;
    const giveUp = (): void => {
      waiting = waiting.filter((other) => other !== work);
      waitTimers.delete(work);
      work.fail(engineUnavailable({ model: modelName, waitedMs: engineWaitMs }, { retryAfterSeconds }));
      noteEnd();
    };
    waitTimers.set(work, setTimeout(giveUp, engineWaitMs));
  };

  /** The engine with the least work of those that may have this one now. */
  const engineFor = (work: Work): Engine | undefined => {
    let best: Engine | undefined;
    for (const [engine, desk] of desks) {
      if (!engine.isUp || (best !== undefined && desk.size >= deskOf(best).size)) continue;
      if (mayJoin(work.record, recordsOf(desk))) best = engine;
    }
    return best;
  };

  const place = (work: Work, engine: Engine): void => {
    lastWireId += 1;
    deskOf(engine).set(lastWireId, work);
    places.set(work, { engine, wireId: lastWireId });
    stopWaiting(work);
    engine.send(work.toMessage(lastWireId));
  };

  const dispatchWaiting = (): void => {
    const placed = new Set<Work>();
    for (const work of submissionOrder(waiting, ({ record }) => record)) {
      const engine = engineFor(work);
      if (engine === undefined) continue;
      place(work, engine);
      placed.add(work);
    }
    if (placed.size > 0) waiting = waiting.filter((work) => !placed.has(work));
    if (!engines.some((engine) => engine.isUp)) waiting.forEach(watchWait);
  };

  const withdraw = (work: Work): void => {
    const at = places.get(work);
    if (at === undefined) return;
    deskOf(at.engine).delete(at.wireId);
    places.delete(work);
  };

  const deliver = (engine: Engine, wireId: number, news: ChoiceEvent | FromEngine): void => {
    const work = deskOf(engine).get(wireId);
    if (work === undefined) return; // it has ended here already
    const reception = work.receive(news);
    if (reception === "progressed") work.record = cleanRecord;
    if (reception === "ended") withdraw(work);
  };

  const engineLost = (engine: Engine): void => {
    const lost = [...deskOf(engine).values()];
    const { records, convicted } = judgeDeath(new Map(lost.map((work) => [work, work.record])));
    lost.forEach(withdraw);
    for (const [work, record] of records) work.record = record;
    for (const work of lost) work.settle();
    if (convicted !== undefined) {
      convicted.id.fail(requestPoisonous({ deaths: convicted.deaths }));
      // The deaths are explained: the strikes of all others were of its making.
      for (const work of [...waiting, ...lost, ...places.keys()]) work.record = cleanRecord;
    }
    line(lost.filter((work) => !work.hasEnded));
    dispatchWaiting();
    noteEnd();
  };

  const received = (engine: Engine, message: FromEngine): void => {
    if (message.type === "step") for (const event of message.events) deliver(engine, wireIdOf(event.request), event);
    else if (message.type === "accepted" || message.type === "refused") deliver(engine, wireIdOf(message.request), message);
    else if (message.type === "tokenized" || message.type === "tokenizeFailed") deliver(engine, message.id, message);
    if (waiting.length > 0) dispatchWaiting();
    noteEnd();
  };

  const fail = (doomed: readonly Work[], error: PagodaError): void => {
    waiting = waiting.filter((work) => !doomed.includes(work));
    for (const work of doomed) {
      stopWaiting(work);
      withdraw(work);
      work.fail(error);
    }
    noteEnd();
  };

  return {
    add(work) {
      lastArrival += 1;
      arrivals.set(work, lastArrival);
      waiting.push(work);
      dispatchWaiting();
    },
    placeOf: (work) => places.get(work),
    forget(work) {
      stopWaiting(work);
      waiting = waiting.filter((other) => other !== work);
      noteEnd();
    },
    engineUp() {
      for (const work of waiting) stopWaiting(work);
      dispatchWaiting();
    },
    engineLost,
    received,
    failUntaken: (error) =>
      fail(
        waiting.filter((work) => !work.isTaken),
        error,
      ),
    failAll: (error) => fail([...waiting, ...places.keys()], error),
    drained: () => (waiting.length === 0 && places.size === 0 ? Promise.resolve() : new Promise((resolve) => onDrained.push(resolve))),
  };
}

function* recordsOf(desk: Desk): Iterable<Work["record"]> {
  for (const { record } of desk.values()) yield record;
}
