/** Errors as clients meet them: OpenAI's JSON shape, with headers that say whether and when to try again. */
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import {
  asPagodaError,
  bodyTooLarge,
  expectationFailed,
  headersTooLarge,
  invalidRequest,
  PagodaError,
  requestNotReceived,
  unsupportedMediaType,
  type WireError,
} from "../errors.js";
import type { Logger } from "../observability/index.js";
import { requestIdOf } from "./request-id.js";
import { dropUnread } from "./unread-body.js";

/** `{"error": {...}}`, for a body or for a chunk of a stream. */
export function errorBody(error: WireError): { readonly error: Readonly<Record<string, unknown>> } {
  const { message, type, param, code, details } = error;
  return { error: { message, type, param: param ?? null, code, ...details } };
}

// What Retry-After says when the error itself has no better figure.
const defaultRetrySeconds: Readonly<Record<number, number>> = { 429: 1, 503: 5 };
const maxRetrySeconds = 60; // the openai client obeys any figure, whatever it is, or ignores larger ones, by version

/** The headers of an error's answer beside its id. */
export function errorHeaders(error: WireError): Record<string, string> {
  const seconds = error.retryAfterSeconds ?? defaultRetrySeconds[error.status];
  return {
    "x-should-retry": String(error.retryable),
    ...(seconds === undefined ? {} : { "retry-after": String(Math.min(maxRetrySeconds, Math.max(1, Math.ceil(seconds)))) }),
  };
}

/** Answers with an error whatever was thrown; what has no code of ours is logged with its stack and told as `internal_error`. */
export function replyWithError(thrown: unknown, request: FastifyRequest, reply: FastifyReply, log: Logger): FastifyReply {
  const error = codedFrom(thrown, request);
  logFailure(error, request.id, log, "request failed");
  if (!request.raw.complete) {
    reply.removeHeader("connection"); // fastify would close at once
    dropUnread(request.raw);
  }
  return reply.code(error.status).headers(errorHeaders(error)).send(errorBody(error));
}

/**
 * Logs what went wrong on the server's side, a fault of ours with its stack. Status 503 is no fault: it says that an engine starts, or that the server ends,
 * and machines that ask `/ready` every second need no line each. What the client did is in the line of its request.
 */
export function logFailure(error: PagodaError, request: string, log: Logger, what: string): void {
  if (error.code === "not_ready") log.debug({ request, code: error.code }, what);
  else if (error.status === 503) log.info({ request, code: error.code }, what);
  else if (error.status >= 500) log.error({ request, code: error.code, err: error.cause ?? error }, what);
}

/** Fastify's own errors get codes of ours. */
function codedFrom(thrown: unknown, request: FastifyRequest): PagodaError {
  if (thrown instanceof PagodaError) return thrown;
  const { code, statusCode, message } = Object(thrown) as Partial<FastifyError>;
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return bodyTooLarge({ limitBytes: request.routeOptions.bodyLimit ?? 0 });
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE") return unsupportedMediaType({ received: request.headers["content-type"] || undefined });
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return invalidRequest({ message: `The request could not be read: ${message ?? "it is malformed"}.` }, { cause: thrown });
  }
  return asPagodaError(thrown);
}

const parserErrors: Readonly<Record<string, () => PagodaError>> = {
  HPE_HEADER_OVERFLOW: () => headersTooLarge({}),
  ERR_HTTP_REQUEST_TIMEOUT: () => requestNotReceived({}),
};

/** Answers bytes that are not HTTP: no request exists yet, so the answer is written to the socket itself. */
export function answerUnparsable(thrown: NodeJS.ErrnoException, socket: Socket): void {
  if (thrown.code === "ECONNRESET" || !socket.writable) {
    socket.destroy();
    return;
  }
  const error = parserErrors[thrown.code ?? ""]?.() ?? invalidRequest({ message: "The request is not valid HTTP." });
  const body = JSON.stringify(errorBody(error));
  const headers = {
    "content-type": "application/json; charset=utf-8",
    "content-length": String(Buffer.byteLength(body)),
    "x-request-id": requestIdOf(undefined),
    ...errorHeaders(error),
    connection: "close",
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${error.status} ${STATUS_CODES[error.status]}\r\n${head.join("")}\r\n${body}`, () => socket.destroy());
}

/** Answers a request with an `Expect` header of another kind than Node knows: such a request reaches no route. */
export function answerExpectation(request: IncomingMessage, response: ServerResponse): void {
  const error = expectationFailed({ received: request.headers.expect ?? "" });
  const body = JSON.stringify(errorBody(error));
  response.writeHead(error.status, {
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "x-request-id": requestIdOf(request.headers["x-request-id"]),
    ...errorHeaders(error),
  });
  response.end(body);
  dropUnread(request);
}
