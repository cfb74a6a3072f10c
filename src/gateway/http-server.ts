/** The bare HTTP server: how requests are read, named, counted and logged, and how everything that goes wrong is answered. */
import { type FastifyInstance, type FastifyReply, type FastifyRequest, fastify } from "fastify";
import { clientDisconnected, invalidRequest, methodNotAllowed, routeNotFound, unsupportedEncoding } from "../errors.js";
import { answerExpectation, answerUnparsable, replyWithError } from "./error-replies.js";
import { noteArrival } from "./exchange.js";
import type { GatewayContext } from "./gateway-context.js";
import { createIdleCounter } from "./idle-counter.js";
import { parseJsonBody } from "./json-body.js";
import { requestIdOf } from "./request-id.js";
import { createRouteTable } from "./route-table.js";

export interface HttpServer {
  readonly app: FastifyInstance;
  /** Resolves when every request that came in is answered, or its client is gone. */
  allAnswered(): Promise<void>;
}

/** Makes a server without routes. */
export function createHttpServer({ config, metrics, log }: Pick<GatewayContext, "config" | "metrics" | "log">): HttpServer {
  const unanswered = createIdleCounter();
  const { bodyLimit, requestTimeout } = config.server;
  const app = fastify({
    logger: false,
    bodyLimit,
    requestTimeout, // for a request to arrive; the answer has a deadline of its own
    http: {
      headersTimeout: Math.min(60_000, requestTimeout),
      connectionsCheckingInterval: Math.min(30_000, Math.max(100, requestTimeout / 4)),
      requireHostHeader: false, // Node would answer without a body; it is checked below
    },
    return503OnClosing: false, // the gateway refuses new work itself, in OpenAI's shape
    forceCloseConnections: "idle",
    routerOptions: { maxParamLength: 1024 },
    requestIdHeader: false,
    genReqId: ({ headers }) => requestIdOf(headers["x-request-id"]),
    clientErrorHandler: answerUnparsable,
    frameworkErrors: (error, request, reply) => {
      reply.header("x-request-id", request.id);
      replyWithError(error, request as FastifyRequest, reply as FastifyReply, log);
    },
  });

  app.server.on("checkExpectation", answerExpectation);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("application/json", { parseAs: "buffer" }, (_request, body, done) => {
    try {
      done(null, parseJsonBody(body as Buffer));
    } catch (thrown) {
      done(thrown as Error);
    }
  });

  app.addHook("onRequest", async (request, reply) => {
    noteArrival(request);
    unanswered.enter();
    reply.header("x-request-id", request.id);
    const arrivedMs = performance.now();
    reply.raw.once("close", () => {
      unanswered.leave();
      const status = reply.raw.headersSent ? reply.raw.statusCode : clientDisconnected({}).status;
      const route = request.routeOptions.url ?? "unmatched";
      metrics.countHttpRequest(route, status);
      log[quietRoutes.has(route) ? "debug" : "info"](
        { request: request.id, method: request.method, route, status, ms: Math.round(performance.now() - arrivedMs) },
        "request",
      );
    });
  });

  app.addHook("onRequest", async ({ headers, raw }) => {
    if (headers.host === undefined && raw.httpVersion === "1.1") throw invalidRequest({ message: "The request has no 'Host' header." });
    const encoding = headers["content-encoding"];
    if (encoding !== undefined && encoding !== "" && encoding.toLowerCase() !== "identity") throw unsupportedEncoding({ received: encoding });
  });

  app.setErrorHandler((error, request, reply) => {
    if (reply.raw.destroyed) return reply.hijack(); // nobody is left to be told
    return replyWithError(error, request, reply, log);
  });

  const routes = createRouteTable(app);
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?", 1)[0] ?? "";
    const allowed = routes.methodsAt(path);
    if (allowed.length === 0) throw routeNotFound({ method: request.method, path });
    reply.header("allow", allowed.join(", "));
    throw methodNotAllowed({ method: request.method, path, allowed });
  });
  return { app, allAnswered: unanswered.idle };
}

// Asked every few seconds by machines.
const quietRoutes: ReadonlySet<string> = new Set(["/health", "/v1/health", "/ready", "/metrics"]);
