/** The HTTP side of Pagoda: listener, routes, and an end that lets running answers finish. */
import type { FastifyInstance } from "fastify";
import type { Config } from "../config/schema.js";
import { shuttingDown } from "../errors.js";
import type { Logger, Metrics } from "../observability/index.js";
import { isDoneWithin } from "./abort.js";
import { createExchanges } from "./exchange.js";
import type { GatewayContext } from "./gateway-context.js";
import { createHttpServer } from "./http-server.js";
import { answerChat } from "./openai/chat-route.js";
import { listModels, retrieveModel } from "./openai/models-route.js";
import { addOperatorRoutes } from "./operator-routes.js";
import type { ServedModel } from "./served-model.js";

export interface GatewayOptions {
  readonly config: Pick<Config, "server" | "sampling" | "observability">;
  /** The first one answers requests that name no model. */
  readonly models: readonly ServedModel[];
  readonly metrics: Metrics;
  readonly log: Logger;
}

export interface Gateway {
  readonly app: FastifyInstance;
  /** Starts to listen and tells the address: `http://127.0.0.1:8000`. Rejects when the port is taken. */
  listen(): Promise<string>;
  /** Refuses new work, lets running answers finish for up to `graceMs`, cuts off what is left with an error, and stops listening. */
  close(graceMs: number): Promise<void>;
}

const lastWordsMs = 1000; // for clients to take the error that ends their answer

/** Makes the server; nothing listens yet. The engines stay the caller's. */
export function createGateway(options: GatewayOptions): Gateway {
  const exchanges = createExchanges(options.config.server.requestTimeout);
  let isClosing = false;
  const context: GatewayContext = { ...options, exchanges, isClosing: () => isClosing };
  const { app, allAnswered } = createHttpServer(context);

  for (const { name } of context.models) context.metrics.forModel(name);
  addOperatorRoutes(app, context);
  for (const prefix of ["/v1", ""]) {
    app.get(`${prefix}/models`, () => listModels(context.models));
    app.get<{ Params: { "*": string } }>(`${prefix}/models/*`, ({ params }) => retrieveModel(context.models, params["*"]));
    app.post(`${prefix}/chat/completions`, (request, reply) => {
      if (isClosing) throw shuttingDown({});
      return answerChat(context, request, reply);
    });
  }

  return {
    app,
    async listen() {
      const { host, port } = context.config.server;
      return app.listen({ host, port });
    },
    async close(graceMs) {
      isClosing = true;
      if (!(await isDoneWithin(graceMs, exchanges.idle()))) exchanges.abortAll(shuttingDown({}));
      await isDoneWithin(lastWordsMs, allAnswered());
      app.server.closeAllConnections(); // also those that never sent a request, which Node does not count as idle
      const closed = app.close();
      if (!(await isDoneWithin(lastWordsMs, closed))) app.server.closeAllConnections(); // what came in between
      await closed;
    },
  };
}
