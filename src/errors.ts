/** Every error a user can meet, coded: what it is called, which HTTP status and OpenAI type it has, and whether a retry can help. */

/** The parts of an error that do not change from one occurrence to the next. */
export interface ErrorDefinition<Data> {
  /** Stable name for programs, in snake_case. */
  readonly code: string;
  /** HTTP status when the error is answered before any output was sent. */
  readonly status: number;
  /** OpenAI's error `type`. */
  readonly type: string;
  /** Whether the same request may succeed later; sent as `x-should-retry`. */
  readonly retryable: boolean;
  readonly message: (data: Data) => string;
}

/** What may accompany one occurrence of an error. */
export interface ErrorOptions {
  readonly cause?: unknown;
  /** The request field at fault, such as `messages[1].content`. */
  readonly param?: string;
  /** Seconds after which a retry makes sense, at most 60; sent as `Retry-After`. */
  readonly retryAfterSeconds?: number;
  /** Further members of the error body, such as `n_prompt_tokens`. */
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An error as it crosses a process boundary. */
export interface WireError {
  readonly code: string;
  readonly status: number;
  readonly type: string;
  readonly retryable: boolean;
  readonly message: string;
  readonly param?: string;
  readonly retryAfterSeconds?: number;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** An error with a code. Made by the functions below, never directly. */
export class PagodaError extends Error implements WireError {
  readonly code: string;
  readonly status: number;
  readonly type: string;
  readonly retryable: boolean;
  readonly param: string | undefined;
  readonly retryAfterSeconds: number | undefined;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(wire: WireError, cause?: unknown) {
    super(wire.message, cause === undefined ? undefined : { cause });
    this.name = "PagodaError";
    this.code = wire.code;
    this.status = wire.status;
    this.type = wire.type;
    this.retryable = wire.retryable;
    this.param = wire.param;
    this.retryAfterSeconds = wire.retryAfterSeconds;
    this.details = wire.details;
  }
}

/** Declares an error: the result makes one occurrence of it. */
export function codedError<Data>(definition: ErrorDefinition<Data>): (data: Data, options?: ErrorOptions) => PagodaError {
  return (data, options = {}) => {
    const { cause, ...rest } = options;
    const { code, status, type, retryable } = definition;
    return new PagodaError({ code, status, type, retryable, message: definition.message(data), ...rest }, cause);
  };
}

/** The parts of an error that another process needs to make it again. */
export function toWireError(error: WireError): WireError {
  const { code, status, type, retryable, message, param, retryAfterSeconds, details } = error;
  return { code, status, type, retryable, message, param, retryAfterSeconds, details };
}

/** The coded form of anything that was thrown; what has no code becomes `internal_error` with the original as its cause. */
export function asPagodaError(thrown: unknown): PagodaError {
  return thrown instanceof PagodaError ? thrown : internalError({}, { cause: thrown });
}

export const internalError = codedError<Record<never, never>>({
  code: "internal_error",
  status: 500,
  type: "server_error",
  retryable: false,
  message: () => "The server met an internal error. The request id finds it in the server's log.",
});

// --- requests ---

export const invalidRequest = codedError<{ message: string }>({
  code: "invalid_request",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => d.message,
});

export const contextTooLong = codedError<{ promptTokens: number; contextTokens: number }>({
  code: "context_length_exceeded",
  status: 400,
  type: "exceed_context_size_error",
  retryable: false,
  message: (d) => `The prompt has ${d.promptTokens} tokens and exceeds the available context size of ${d.contextTokens} tokens (maximum context length).`,
});

export const modelNotFound = codedError<{ model: string; known: readonly string[] }>({
  code: "model_not_found",
  status: 404,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The model '${d.model}' does not exist. Served here: ${d.known.join(", ")}.`,
});

// --- load and availability ---

export const queueFull = codedError<{ waiting: number; limit: number; unit: "requests" | "tokens" }>({
  code: "queue_full",
  status: 429,
  type: "rate_limit_error",
  retryable: true,
  message: (d) => `The waiting queue is full: ${d.waiting} of at most ${d.limit} ${d.unit} are waiting. Try again after the time in Retry-After.`,
});

export const engineUnavailable = codedError<{ model: string; waitedMs: number }>({
  code: "engine_unavailable",
  status: 503,
  type: "unavailable_error",
  retryable: true,
  message: (d) => `No engine for '${d.model}' is up; the request waited ${Math.round(d.waitedMs)} ms for one.`,
});

export const requestPoisonous = codedError<{ deaths: number }>({
  code: "engine_died_on_request",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) => `The engine died ${d.deaths} times while it worked on this request, so the request was given up.`,
});

export const shuttingDown = codedError<Record<never, never>>({
  code: "shutting_down",
  status: 503,
  type: "unavailable_error",
  retryable: true,
  message: () => "The server is shutting down and takes no new requests.",
});
