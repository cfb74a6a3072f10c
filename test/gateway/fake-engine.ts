/** An engine client whose answers a test scripts. Its vocabulary is the 256 bytes and two control tokens. */
import type {
  ChoiceEvent,
  EngineClient,
  EngineInfo,
  EngineState,
  EngineStats,
  GenerateRequest,
  Generation,
  ModelInfo,
  VocabularyInfo,
} from "../../src/engine/client/engine-client.js";

export const endToken = 257;
export const contextTokens = 512;

export const vocabulary: VocabularyInfo = {
  type: "bpe",
  pieces: Buffer.from(Uint8Array.from({ length: 256 }, (_, byte) => byte)).toString("base64"),
  pieceLengths: Buffer.from(Uint16Array.from({ length: 258 }, (_, id) => (id < 256 ? 1 : 0)).buffer).toString("base64"),
  special: [
    { id: 256, text: "<|im_start|>", lstrip: false, rstrip: false },
    { id: endToken, text: "<|im_end|>", lstrip: false, rstrip: false },
  ],
  endOfGeneration: [endToken],
  bos: undefined,
  eos: { id: endToken, text: "<|im_end|>" },
  addBos: false,
  addEos: false,
  addSpacePrefix: false,
};

/** One request in the fake engine's hands. */
export interface FakeJob {
  readonly request: GenerateRequest;
  emit(event: Omit<ChoiceEvent, "request">): void;
  /** Emits a text byte by byte, each token an event of its own. */
  say(text: string | Uint8Array, index?: number): void;
  start(index?: number, cachedTokens?: number): void;
  /** Ends a choice the way a model does, with its end token. */
  end(index?: number): void;
  /** Which choices were cancelled, in order; undefined is all of them. */
  readonly cancelled: readonly (number | undefined)[];
  /** Resolves at the first cancel. */
  readonly whenCancelled: Promise<void>;
  /** Events that the gateway has not read yet. */
  readonly unread: number;
}

export interface FakeEngine {
  readonly client: EngineClient;
  readonly jobs: readonly FakeJob[];
  /** What happens with each request; by default it stays open until the test acts. May throw to refuse it. */
  onSubmit: (job: FakeJob, signal: AbortSignal | undefined) => void | Promise<void>;
  /** Resolves with the job of this number, once it is there. */
  job(number: number): Promise<FakeJob>;
  state: EngineState;
  stats: EngineStats[];
  restarts: number;
}

export function createFakeEngine(): FakeEngine {
  const jobs: FakeJob[] = [];
  const arrivals: { readonly number: number; readonly resolve: (job: FakeJob) => void }[] = [];
  const engine: FakeEngine = {
    jobs,
    onSubmit: () => undefined,
    job: (number) => {
      const here = jobs[number];
      return here === undefined ? new Promise((resolve) => arrivals.push({ number, resolve })) : Promise.resolve(here);
    },
    state: "ready",
    stats: [],
    restarts: 0,
    client: {
      get state() {
        return engine.state;
      },
      ready: () => Promise.resolve({ model: { tokens: vocabulary } as ModelInfo, engine: { contextTokens } as EngineInfo }),
      async submit(request, signal) {
        const { job, generation } = createJob(request);
        jobs.push(job);
        await engine.onSubmit(job, signal);
        for (const arrival of arrivals) if (jobs[arrival.number] !== undefined) arrival.resolve(jobs[arrival.number] as FakeJob);
        return generation;
      },
      tokenize: (segments) => Promise.resolve(segments.map(({ text }) => [...Buffer.from(text)])),
      stats: () => engine.stats,
      get restarts() {
        return engine.restarts;
      },
      close: () => Promise.resolve(),
      onExit: () => undefined,
    },
  };
  return engine;
}

function createJob(request: GenerateRequest): { readonly job: FakeJob; readonly generation: Generation } {
  const queue: ChoiceEvent[] = [];
  let read = 0;
  const cancelled: (number | undefined)[] = [];
  const open = new Set(request.choices.map(({ index }) => index));
  let wake = () => {};
  let onCancel = () => {};
  const whenCancelled = new Promise<void>((resolve) => {
    onCancel = resolve;
  });

  function emit(event: Omit<ChoiceEvent, "request">): void {
    if (!open.has(event.index)) return;
    if (event.finish !== undefined) open.delete(event.index);
    queue.push({ request: request.id, ...event });
    wake();
  }

  async function* events(): AsyncGenerator<ChoiceEvent> {
    for (;;) {
      const event = queue[read];
      if (event !== undefined) {
        read += 1;
        yield event;
      } else if (open.size === 0) return;
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  }

  const logprob =
    request.topLogprobs === undefined
      ? undefined
      : { logprob: -0.5, top: [[65, -0.5] as const, [66, Number.NEGATIVE_INFINITY] as const].slice(0, request.topLogprobs) };
  const job: FakeJob = {
    request,
    emit,
    say(text, index = 0) {
      for (const token of typeof text === "string" ? Buffer.from(text) : text) emit({ index, token, ...(logprob && { logprob }) });
    },
    start: (index = 0, cachedTokens = 0) => emit({ index, started: { queueMs: 1, cachedTokens } }),
    end: (index = 0) => emit({ index, token: endToken, finish: "stop", ...(logprob && { logprob }) }),
    cancelled,
    whenCancelled,
    get unread() {
      return queue.length - read;
    },
  };
  const generation: Generation = {
    events: { [Symbol.asyncIterator]: events },
    cancel(index) {
      cancelled.push(index);
      onCancel();
      for (const one of index === undefined ? [...open] : [index]) emit({ index: one, finish: "cancelled" });
    },
  };
  return { job, generation };
}

/** Makes the engine answer every request at once with this text. */
export function answering(text: string): FakeEngine["onSubmit"] {
  return (job) => {
    for (const { index } of job.request.choices) {
      job.start(index);
      job.say(text, index);
      job.end(index);
    }
  };
}
