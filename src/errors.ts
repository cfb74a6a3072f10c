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

/** The error that another process sent. */
export function fromWireError(error: WireError): PagodaError {
  return new PagodaError(error);
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

export const contextTooLong = codedError<{ promptTokens: number; contextTokens: number; isLowerBound?: boolean }>({
  code: "context_length_exceeded",
  status: 400,
  type: "exceed_context_size_error",
  retryable: false,
  message: (d) =>
    `The prompt has ${d.isLowerBound === true ? "at least " : ""}${d.promptTokens} tokens and exceeds the available context size of ${d.contextTokens} tokens (maximum context length).`,
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

// --- engine process ---

export const protocolMismatch = codedError<{ own: number; other: number }>({
  code: "engine_protocol_mismatch",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) =>
    `This process speaks version ${d.own} of the engine protocol, the other side version ${d.other}. Both must come from the same build of Pagoda.`,
});

export const engineCrashed = codedError<{ model: string; exit: string; lastLines: readonly string[] }>({
  code: "engine_crashed",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) =>
    `The engine process of '${d.model}' ended by itself (${d.exit}).${d.lastLines.length > 0 ? ` Its last output: ${d.lastLines.join(" | ")}` : ""}`,
});

export const settingDoesNotFit = codedError<{ message: string }>({
  code: "setting_does_not_fit",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) => d.message,
});

// --- configuration and command line ---

export const configInvalid = codedError<{ problems: readonly string[] }>({
  code: "config_invalid",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) =>
    d.problems.length === 1 ? `${d.problems[0]}` : `The configuration has ${d.problems.length} problems:\n${d.problems.map((p) => `  ${p}`).join("\n")}`,
});

export const addressInUse = codedError<{ host: string; port: number }>({
  code: "address_in_use",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) => `Port ${d.port} on ${d.host} is in use by another program. Choose another with --port.`,
});

export const addressRefused = codedError<{ host: string; port: number; reason: string }>({
  code: "address_refused",
  status: 500,
  type: "server_error",
  retryable: false,
  message: (d) => `Cannot listen on ${d.host}, port ${d.port} (${d.reason}).`,
});

// --- model sources and files ---

export const modelSourceUnknown = codedError<{ source: string; allowed: readonly string[] }>({
  code: "model_source_unknown",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The model source '${d.source}' is not one that Pagoda knows. Allowed: ${d.allowed.join(", ")}.`,
});

export const modelSourceNotServed = codedError<{ source: string; scheme: string }>({
  code: "model_source_not_served",
  status: 501,
  type: "not_supported_error",
  retryable: false,
  message: (d) =>
    `The model source '${d.source}' cannot be served: this version does not fetch '${d.scheme}:' sources yet. Download the GGUF file and give its path.`,
});

export const modelFileMissing = codedError<{ path: string; reason: string }>({
  code: "model_file_missing",
  status: 404,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The model file '${d.path}' cannot be read: ${d.reason}.`,
});

export const notGguf = codedError<{ path: string; reason: string }>({
  code: "not_gguf",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `'${d.path}' is not a GGUF file that can be loaded: ${d.reason}.`,
});

export const truncatedGguf = codedError<{ path: string; fileBytes: number; neededBytes: number }>({
  code: "truncated_gguf",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `'${d.path}' is truncated or damaged: it has ${d.fileBytes} bytes and its own header asks for at least ${d.neededBytes}. Fetch it again.`,
});

export const invalidGguf = codedError<{ path: string; reason: string }>({
  code: "invalid_gguf",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The header of '${d.path}' is damaged or of an unknown kind: ${d.reason}.`,
});

// --- chat templates and tokenizers ---

export const chatTemplateInvalid = codedError<{ origin: string; reason: string }>({
  code: "chat_template_invalid",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The chat template (${d.origin}) cannot be used: ${d.reason}`,
});

export const messagesRefusedByTemplate = codedError<{ reason: string }>({
  code: "messages_refused_by_template",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The model's chat template does not accept these messages: ${d.reason}`,
});

export const tokenizerFileInvalid = codedError<{ path: string; reason: string }>({
  code: "tokenizer_file_invalid",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The tokenizer file '${d.path}' cannot be used: ${d.reason}.`,
});

// --- gateway ---

export const unsupportedParameter = codedError<{ field: string; hint: string }>({
  code: "unsupported_parameter",
  status: 400,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `'${d.field}' is not supported here: ${d.hint}`,
});

export const routeNotFound = codedError<{ method: string; path: string }>({
  code: "not_found",
  status: 404,
  type: "not_found_error",
  retryable: false,
  message: (d) => `There is nothing at ${d.method} ${d.path}.`,
});

export const methodNotAllowed = codedError<{ method: string; path: string; allowed: readonly string[] }>({
  code: "method_not_allowed",
  status: 405,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `${d.path} does not answer ${d.method}; it answers ${d.allowed.join(", ")}.`,
});

export const unsupportedMediaType = codedError<{ received: string | undefined }>({
  code: "unsupported_media_type",
  status: 415,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The body must be sent with 'Content-Type: application/json'; it came ${d.received === undefined ? "without one" : `as '${d.received}'`}.`,
});

export const unsupportedEncoding = codedError<{ received: string }>({
  code: "unsupported_content_encoding",
  status: 415,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The body must be sent without compression; it came with 'Content-Encoding: ${d.received}'.`,
});

export const expectationFailed = codedError<{ received: string }>({
  code: "expectation_failed",
  status: 417,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The server meets the expectation '100-continue' only, not '${d.received}'.`,
});

export const bodyTooLarge = codedError<{ limitBytes: number }>({
  code: "request_too_large",
  status: 413,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The request body is larger than the ${d.limitBytes} bytes allowed (server.bodyLimit).`,
});

export const headersTooLarge = codedError<Record<never, never>>({
  code: "headers_too_large",
  status: 431,
  type: "invalid_request_error",
  retryable: false,
  message: () => "The request's headers are too large.",
});

export const requestNotReceived = codedError<Record<never, never>>({
  code: "request_not_received",
  status: 408,
  type: "invalid_request_error",
  retryable: true,
  message: () => "The request did not arrive completely in time.",
});

export const requestTimedOut = codedError<{ limitMs: number }>({
  code: "request_timeout",
  status: 504,
  type: "server_error",
  retryable: false,
  message: (d) => `The answer was not complete after ${d.limitMs} ms (server.requestTimeout), so it was ended.`,
});

export const slowReader = codedError<{ stalledMs: number }>({
  code: "slow_reader",
  status: 408,
  type: "invalid_request_error",
  retryable: false,
  message: (d) => `The client took nothing of its stream for ${d.stalledMs} ms (server.slowReaderTimeout), so the stream was cut off.`,
});

export const clientDisconnected = codedError<Record<never, never>>({
  code: "client_disconnected",
  status: 499,
  type: "invalid_request_error",
  retryable: false,
  message: () => "The client closed its connection before the answer was complete.",
});

// --- engine: libraries and models ---

const engineError = { status: 500, type: "server_error", retryable: false } as const;

export const librariesUnusable = codedError<{ folder: string; reason: string }>({
  ...engineError,
  code: "engine_libraries_unusable",
  message: (d) => `The llama.cpp libraries in '${d.folder}' cannot be used: ${d.reason}`,
});

export const llamaVersionMismatch = codedError<{ folder: string; expected: string; found: string }>({
  ...engineError,
  code: "engine_version_mismatch",
  message: (d) => `The llama.cpp library in '${d.folder}' is release ${d.found}, but this Pagoda works with release ${d.expected} only.`,
});

export const backendUnavailable = codedError<{ backend: string; reason: string }>({
  ...engineError,
  code: "engine_backend_unavailable",
  message: (d) => `The '${d.backend}' backend cannot be used on this machine: ${d.reason}`,
});

export const modelUnsupported = codedError<{ path: string; reason: string }>({
  ...engineError,
  code: "model_unsupported",
  message: (d) => `The model '${d.path}' is not supported: ${d.reason}`,
});

export const modelLoadFailed = codedError<{ path: string; reason: string }>({
  ...engineError,
  code: "model_load_failed",
  message: (d) => `The model '${d.path}' could not be loaded: ${d.reason}`,
});

export const modelLoadCancelled = codedError<{ path: string }>({
  ...engineError,
  code: "model_load_cancelled",
  message: (d) => `Loading the model '${d.path}' was cancelled.`,
});

export const engineOutOfMemory = codedError<{ what: string; reason: string }>({
  ...engineError,
  code: "engine_out_of_memory",
  message: (d) => `There is not enough memory for ${d.what}: ${d.reason}`,
});

export const contextFailed = codedError<{ reason: string }>({
  ...engineError,
  code: "engine_context_failed",
  message: (d) => `The engine's context could not be made: ${d.reason}`,
});

// --- engine: computing ---

export const decodeFailed = codedError<{ status: number; reason: string }>({
  ...engineError,
  code: "engine_decode_failed",
  message: (d) => `The engine failed while it computed (llama_decode returned ${d.status}): ${d.reason}`,
});

export const rowRejected = codedError<{ reason: string }>({
  ...engineError,
  code: "engine_rejected_tokens",
  message: (d) => `The engine did not accept the tokens of this request: ${d.reason}`,
});

export const cacheMoveFailed = codedError<{ move: string; reason: string }>({
  ...engineError,
  code: "engine_cache_move_failed",
  message: (d) => `The KV cache could not ${d.move}: ${d.reason}`,
});

export const logitsNotFinite = codedError<Record<never, never>>({
  ...engineError,
  code: "engine_logits_not_finite",
  message: () => "The model's output for this request is not a number: no token can be chosen.",
});

export const noTokenLeft = codedError<Record<never, never>>({
  ...engineError,
  code: "no_token_left",
  status: 400,
  type: "invalid_request_error",
  message: () => "There is no token left to choose: what the request bans (logit_bias, ignore_eos) and what its sampling parameters leave out is all there is.",
});

export const tokenizeFailed = codedError<{ reason: string }>({
  ...engineError,
  code: "tokenize_failed",
  message: (d) => `The text could not be tokenized: ${d.reason}`,
});

export const kvExhausted = codedError<Record<never, never>>({
  code: "kv_exhausted",
  status: 503,
  type: "unavailable_error",
  retryable: true,
  message: () => "The engine's KV cache repeatedly had no room for this request.",
});

export const notReady = codedError<{ models: readonly { readonly name: string; readonly state: string }[] }>({
  code: "not_ready",
  status: 503,
  type: "unavailable_error",
  retryable: true,
  message: (d) => `No model can answer now: ${d.models.map(({ name, state }) => `${name} is ${state}`).join(", ")}.`,
});
