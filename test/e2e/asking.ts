/** Asks through the official clients, whole or streamed, and puts the answer together. */
import type OpenAI from "openai";
import { expect } from "vitest";
import { clients } from "../gateway/clients.js";
import type { Server } from "./server.js";
import type { ChatFields, Task } from "./tasks.js";

/** What a client has of an answer, by choice. */
export interface Answer {
  readonly texts: readonly string[];
  readonly finishes: readonly (string | null)[];
}

/** An answer and what it cost. */
export interface CostedAnswer extends Answer {
  readonly usage: OpenAI.CompletionUsage;
}

export interface AskOptions {
  readonly stream?: boolean;
  readonly signal?: AbortSignal;
  /** Sees each piece of text of a stream as it comes. */
  readonly onText?: (text: string, index: number) => void;
}

/** One client of each version, for this server. They never ask twice. */
export function clientsOf(server: Server): readonly [OpenAI, OpenAI] {
  const [seven, six] = clients.map(([, Client]) => new Client({ baseURL: `${server.url}/v1`, apiKey: "none", maxRetries: 0 }));
  return [seven as OpenAI, six as OpenAI];
}

/** Asks one request. Rejects with what the client throws, or with the signal's reason as soon as it aborts: a client's stream may then stay silent for ever. */
export async function ask(client: OpenAI, fields: ChatFields, options: AskOptions = {}): Promise<CostedAnswer> {
  const answer = options.stream === true ? askStreamed(client, fields, options) : askWhole(client, fields, options);
  const { signal } = options;
  if (signal === undefined) return answer;
  return Promise.race([answer, new Promise<never>((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))]);
}

async function askWhole(client: OpenAI, fields: ChatFields, options: AskOptions): Promise<CostedAnswer> {
  const { choices, usage } = await client.chat.completions.create({ model: "pagoda-tiny", ...fields, stream: false }, { signal: options.signal });
  expect(choices.map(({ index }) => index)).toEqual([...choices.keys()]);
  expect(usage).toBeDefined();
  return {
    texts: choices.map(({ message }) => message.content ?? ""),
    finishes: choices.map(({ finish_reason: finish }) => finish),
    usage: usage as OpenAI.CompletionUsage,
  };
}

/** Also checks the order of a stream's parts: role, text, finish for each choice, then the usage. */
async function askStreamed(client: OpenAI, fields: ChatFields, { signal, onText }: AskOptions): Promise<CostedAnswer> {
  const body = { model: "pagoda-tiny", ...fields, stream: true as const, stream_options: { include_usage: true } };
  const stream = await client.chat.completions.create(body, { signal });
  const texts: string[] = [];
  const finishes: (string | null)[] = [];
  let usage: OpenAI.CompletionUsage | undefined;
  for await (const { choices, ...chunk } of stream) {
    expect(usage).toBeUndefined();
    usage = chunk.usage ?? undefined;
    for (const { index, delta, finish_reason: finish } of choices) {
      expect([delta.role === "assistant", finishes[index]]).toEqual([texts[index] === undefined, texts[index] === undefined ? undefined : null]);
      texts[index] = (texts[index] ?? "") + (delta.content ?? "");
      finishes[index] = finish;
      if (delta.content) onText?.(delta.content, index);
    }
  }
  // The clients end a stream that was aborted, or cut, as quietly as a whole one.
  signal?.throwIfAborted();
  expect(usage).toBeDefined();
  return { texts, finishes, usage: usage as OpenAI.CompletionUsage };
}

/** Asks for what must be refused, and returns what the client throws. */
export async function refusal(client: OpenAI, fields: ChatFields, options: AskOptions = {}): Promise<unknown> {
  return ask(client, fields, options).then(
    () => Promise.reject(new Error("It was answered.")),
    (thrown: unknown) => thrown,
  );
}

/** Counts the pieces of text of one or several streams; `come` resolves with the one of this number. */
export function pieces(number: number): { readonly come: Promise<void>; readonly onText: () => void } {
  let seen = 0;
  let resolveCome = (): void => undefined;
  const come = new Promise<void>((resolve) => {
    resolveCome = resolve;
  });
  const onText = (): void => {
    seen += 1;
    if (seen === number) resolveCome();
  };
  return { come, onText };
}

/** Whether an answer failed for no other reason than that the signal aborted it. */
export function isAbort(thrown: unknown, signal: AbortSignal): boolean {
  return thrown === signal.reason || clients.some(([, Client]) => thrown instanceof Client.APIUserAbortError);
}

/** What an undisturbed answer to the task is. */
export function expectedAnswer({ text, finish }: Task, choices = 1): Answer {
  return { texts: Array(choices).fill(text), finishes: Array(choices).fill(finish) };
}

/** Asks all tasks at once, in turn by each client version, and expects every answer to be the right one. */
export async function expectAllAnswered(server: Server, tasks: readonly Task[], options: AskOptions = {}): Promise<readonly CostedAnswer[]> {
  const both = clientsOf(server);
  const answers = await Promise.all(tasks.map((task, index) => ask(both[index % 2] as OpenAI, task.fields, options)));
  expect(answers).toMatchObject(tasks.map((task) => expectedAnswer(task)));
  return answers;
}
