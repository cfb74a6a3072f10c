/** The life of one HTTP request that makes the engine work: its deadline, its client's departure, and the server's own end. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { clientDisconnected, type PagodaError, requestTimedOut } from "../errors.js";
import { createIdleCounter } from "./idle-counter.js";
import { createStageTimings, type StageTimings } from "./stage-timings.js";

export interface Exchange {
  readonly requestId: string;
  readonly timings: StageTimings;
  /** Aborts, with a coded error as its reason, when the client leaves, the time is over, or the server ends. */
  readonly signal: AbortSignal;
  abort(reason: PagodaError): void;
}

/** All exchanges that are under way. */
export interface Exchanges {
  /** Runs `work` as an exchange. Its signal aborts no more once `work` is done. */
  run<Result>(request: FastifyRequest, reply: FastifyReply, work: (exchange: Exchange) => Promise<Result>): Promise<Result>;
  /** Resolves when no exchange is under way. */
  idle(): Promise<void>;
  abortAll(reason: PagodaError): void;
}

/** @param limitMs how long one exchange may take. */
export function createExchanges(limitMs: number): Exchanges {
  const running = new Set<Exchange>();
  const counter = createIdleCounter();

  return {
    async run(request, reply, work) {
      const controller = new AbortController();
      const abort = (reason: PagodaError) => controller.abort(reason);
      const exchange: Exchange = { requestId: request.id, timings: createStageTimings(arrivalOf(request)), signal: controller.signal, abort };
      const deadline = setTimeout(() => abort(requestTimedOut({ limitMs })), limitMs);
      const onClose = () => {
        if (!reply.raw.writableFinished) abort(clientDisconnected({}));
      };
      reply.raw.once("close", onClose);
      if (reply.raw.destroyed) onClose(); // it left while the body was being read: 'close' has been
      running.add(exchange);
      counter.enter();
      try {
        return await work(exchange);
      } finally {
        clearTimeout(deadline);
        reply.raw.off("close", onClose);
        running.delete(exchange);
        counter.leave();
      }
    },
    idle: counter.idle,
    abortAll(reason) {
      for (const exchange of running) exchange.abort(reason);
    },
  };
}

const arrivals = new WeakMap<FastifyRequest, number>();

/** Notes when a request's headers came in. */
export function noteArrival(request: FastifyRequest): void {
  arrivals.set(request, performance.now());
}

function arrivalOf(request: FastifyRequest): number {
  return arrivals.get(request) ?? performance.now();
}
