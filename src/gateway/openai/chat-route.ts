/** `POST /v1/chat/completions`: one answer, whole or as a stream. */
import type { FastifyReply, FastifyRequest } from "fastify";
import { asPagodaError, type PagodaError } from "../../errors.js";
import { untilAborted } from "../abort.js";
import type { AnswerPiece } from "../choice-answer.js";
import { errorBody, logFailure } from "../error-replies.js";
import type { Exchange } from "../exchange.js";
import type { GatewayContext } from "../gateway-context.js";
import { createGenerationRun, type GenerationRun, type RunOptions } from "../generation-run.js";
import { newId } from "../request-id.js";
import { routeToModel, type ServedModel, whenLoaded } from "../served-model.js";
import { openSseStream, type SseStream } from "../sse-stream.js";
import { type PreparedChat, prepareChat } from "./chat-request.js";
import { type ChatFields, parseChatBody } from "./chat-schema.js";
import { type ChatEnvelope, chatCompletion, createChatChunks, type ShapeOptions } from "./chat-shapes.js";

/** One request, ready to be handed to the engine. */
interface ChatJob {
  readonly fields: ChatFields;
  readonly model: ServedModel;
  readonly prepared: PreparedChat;
  readonly shape: ShapeOptions;
  readonly exchange: Exchange;
}

/** Answers a request, or throws the coded error that is answered instead; after a stream's headers are out, errors go into the stream. */
export async function answerChat(context: GatewayContext, request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
  return context.exchanges.run(request, reply, async (exchange) => {
    const job = await prepare(context, request.body, exchange);
    return job.fields.stream === true ? answerStream(context, job, reply) : answerWhole(context, job, reply);
  });
}

async function prepare(context: GatewayContext, body: unknown, exchange: Exchange): Promise<ChatJob> {
  const fields = parseChatBody(body);
  const model = routeToModel(context.models, fields.model);
  exchange.timings.mark("entry");
  const loaded = await whenLoaded(model, context.config.server.engineWait, exchange.signal);
  const id = newId("chatcmpl-");
  const preparing = prepareChat(id, fields, model, loaded, context.config.sampling, exchange.signal);
  const prepared = await untilAborted(exchange.signal, preparing);
  exchange.timings.mark("tokenize");
  const envelope: ChatEnvelope = {
    id,
    created: Math.floor(Date.now() / 1000),
    model: model.name,
    system_fingerprint: model.fingerprint,
    ...(fields.service_tier !== undefined && { service_tier: "default" }),
    ...(fields.metadata !== undefined && { metadata: fields.metadata }),
  };
  return { fields, model, prepared, exchange, shape: { envelope, vocabulary: loaded.chat.vocabulary, wantsLogprobs: fields.logprobs === true } };
}

async function answerWhole(context: GatewayContext, job: ChatJob, reply: FastifyReply): Promise<FastifyReply> {
  const { exchange, prepared } = job;
  const pieces: AnswerPiece[][] = prepared.generate.choices.map(() => []);
  const run = createGenerationRun({
    ...runOptions(context, job),
    onPiece: (piece) => {
      pieces[piece.index]?.push(piece);
      return undefined;
    },
  });
  const summary = await settling(run, exchange, async () => {
    const generation = await submit(job);
    return untilAborted(exchange.signal, run.follow(generation));
  });
  exchange.timings.set("queue", summary.queueMs);
  exchange.timings.set("prefill", summary.prefillMs);
  exchange.timings.set("decode", summary.decodeMs);
  return reply.header("server-timing", exchange.timings.header()).send(chatCompletion(job.shape, pieces, summary));
}

async function answerStream(context: GatewayContext, job: ChatJob, reply: FastifyReply): Promise<FastifyReply> {
  const { exchange, fields, prepared, shape } = job;
  let stream: SseStream | undefined;
  const chunks = createChatChunks(shape, prepared.generate.choices.length, fields.stream_options?.include_usage === true);
  const run = createGenerationRun({
    ...runOptions(context, job),
    onPiece: (piece) => {
      stream?.write(chunks.piece(piece));
      return stream === undefined || stream.hasRoom ? undefined : stream.room();
    },
  });
  await settling(run, exchange, async () => {
    const generation = await submit(job);
    exchange.timings.mark("submit");
    const open = openStream(context, exchange, reply);
    stream = open;
    try {
      open.write(chunks.end(await untilAborted(exchange.signal, run.follow(generation))));
    } catch (thrown) {
      generation.cancel();
      endWithError(context, exchange, open, thrown);
      run.abandon(asPagodaError(thrown));
    }
    await open.end();
  });
  return reply;
}

function openStream(context: GatewayContext, exchange: Exchange, reply: FastifyReply): SseStream {
  const { streamBuffer, slowReaderTimeout, pingInterval } = context.config.server;
  reply.hijack();
  return openSseStream(reply.raw, {
    bufferBytes: streamBuffer,
    slowReaderTimeoutMs: slowReaderTimeout,
    pingIntervalMs: pingInterval,
    headers: { "x-request-id": exchange.requestId, "server-timing": exchange.timings.header() },
    onSlowReader: exchange.abort,
  });
}

/** Tells the client what ended its stream, and the operator too. */
function endWithError(context: GatewayContext, exchange: Exchange, stream: SseStream, thrown: unknown): void {
  const error = asPagodaError(thrown);
  stream.write(`data: ${JSON.stringify(errorBody(error))}\n\n`);
  context.metrics.countCutStream(error.code);
  if (error.status >= 500) logFailure(error, exchange.requestId, context.log, "stream cut");
  else context.log.info({ request: exchange.requestId, code: error.code }, "stream cut");
}

function runOptions(context: GatewayContext, { exchange, model, prepared, shape }: ChatJob): Omit<RunOptions, "onPiece"> {
  return {
    choices: prepared.generate.choices.length,
    promptTokens: prepared.generate.promptTokens.length,
    arrivedMs: exchange.timings.arrivedMs,
    vocabulary: shape.vocabulary,
    stop: prepared.stop,
    isPromptOnly: prepared.isPromptOnly,
    metrics: context.metrics.forModel(model.name),
    signal: exchange.signal,
  };
}

/** Hands the request to the engine. An abort ends the wait at once, and what is accepted after it is cancelled. */
async function submit({ model, prepared, exchange: { signal } }: ChatJob) {
  const submitted = model.client.submit(prepared.generate, signal);
  submitted.then(
    (generation) => {
      if (signal.aborted) generation.cancel();
      else signal.addEventListener("abort", () => generation.cancel(), { once: true });
    },
    () => undefined, // told by the promise that is awaited
  );
  return untilAborted(signal, submitted);
}

/** Does the work, and lets the run's choices count as ended if it fails. */
async function settling<T>(run: GenerationRun, exchange: Exchange, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    const error: PagodaError = asPagodaError(exchange.signal.aborted ? exchange.signal.reason : thrown);
    run.abandon(error);
    throw error;
  }
}
