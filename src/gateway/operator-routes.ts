/** What operators and their tools ask: whether the process is up, whether it can answer, what it counts. */
import type { FastifyInstance } from "fastify";
import { notReady, shuttingDown } from "../errors.js";
import type { GatewayContext } from "./gateway-context.js";

/** Adds `/health`, `/ready` and `/metrics`. None of them waits for an engine. */
export function addOperatorRoutes(app: FastifyInstance, context: GatewayContext): void {
  for (const path of ["/health", "/v1/health"]) app.get(path, () => ({ status: "ok" }));
  app.get("/ready", () => readiness(context));
  if (!context.config.observability.metrics) return;
  app.get("/metrics", async (_request, reply) => {
    readEngines(context);
    return reply.type(context.metrics.contentType).send(await context.metrics.exposition());
  });
}

/** Ready as soon as one model can answer; throws the 503 otherwise. */
function readiness({ models, isClosing }: GatewayContext) {
  if (isClosing()) throw shuttingDown({});
  const states = models.map((model) => ({ name: model.name, state: model.client.state }));
  if (!states.some(({ state }) => state === "ready")) throw notReady({ models: states }, { details: { models: states } });
  return { status: "ready", models: states };
}

/** Brings the engines' own figures up to date. */
function readEngines({ models, metrics }: GatewayContext): void {
  for (const { name, client } of models) {
    const model = metrics.forModel(name);
    model.readEngines(client.stats());
    model.readRestarts(client.restarts);
  }
}
