/** Starts a gateway on a free port over a fake engine, and reads what it sends byte by byte. */
import { connect, type Socket } from "node:net";
import { createGateway, type Gateway, type GatewayOptions } from "../../src/gateway/index.js";
import { createLogger, createMetrics, type Logger, type Metrics } from "../../src/observability/index.js";
import { createChatTokenizer } from "../../src/tokenizer/index.js";
import { createFakeEngine, type FakeEngine, vocabulary } from "./fake-engine.js";

export type ServerSettings = GatewayOptions["config"]["server"];

export interface Serving {
  readonly url: string;
  readonly port: number;
  readonly engine: FakeEngine;
  readonly gateway: Gateway;
  readonly metrics: Metrics;
  /** Everything that was logged, one JSON object a line. */
  readonly logged: readonly string[];
  post(body: unknown, init?: RequestInit): Promise<Response>;
}

const server: ServerSettings = {
  host: "127.0.0.1",
  port: 0,
  bodyLimit: 256 * 1024,
  requestTimeout: 60_000,
  shutdownGrace: 1000,
  engineWait: 1000,
  streamBuffer: 1024 * 1024,
  slowReaderTimeout: 30_000,
  pingInterval: 15_000,
};

const sampling: GatewayOptions["config"]["sampling"] = {
  profile: "openai",
  temperature: 1,
  topP: 1,
  topK: 0,
  minP: 0,
  typicalP: 1,
  repeatPenalty: 1,
  repeatLastN: 64,
  frequencyPenalty: 0,
  presencePenalty: 0,
  maxTokens: undefined,
  seed: undefined,
};

export interface ServingOptions {
  readonly server?: Partial<ServerSettings>;
  readonly sampling?: Partial<GatewayOptions["config"]["sampling"]>;
  /** Names of the models; each has the same fake engine. */
  readonly models?: readonly string[];
}

/** Starts to serve. Whoever calls closes the gateway. */
export async function startServing(options: ServingOptions = {}): Promise<Serving> {
  const engine = createFakeEngine();
  const metrics = createMetrics({ version: "0.0.0", withoutProcess: true });
  const logged: string[] = [];
  const log: Logger = createLogger({ level: "debug", format: "json", output: { write: (line) => logged.push(line) } });
  const chat = createChatTokenizer({ tokens: vocabulary, chatTemplate: undefined, tokenize: engine.client.tokenize });
  const names = options.models ?? ["pagoda-test"];
  const gateway = createGateway({
    config: {
      server: { ...server, ...options.server },
      sampling: { ...sampling, ...options.sampling },
      observability: { metrics: true, logs: { level: "info", format: "json" } },
    },
    models: names.map((name) => ({ name, aliases: [`${name}-alias`], createdUnixSeconds: 1_700_000_000, client: engine.client, chat, fingerprint: "b1-test" })),
    metrics,
    log,
  });
  const url = await gateway.listen();
  return {
    url,
    port: Number(new URL(url).port),
    engine,
    gateway,
    metrics,
    logged,
    post: (body, init) =>
      fetch(`${url}/v1/chat/completions`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
        ...init,
      }),
  };
}

export const hello = [{ role: "user", content: "hi" }] as const;

/** The value of one sample of `/metrics`; undefined if it is not there. */
export async function sample(serving: Serving, name: string): Promise<number | undefined> {
  const line = (await (await fetch(`${serving.url}/metrics`)).text()).split("\n").find((one) => one.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length + 1));
}

/** Asks again and again until `isTrue`; the test's own time limit ends it. */
export async function eventually(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** A raw connection that has sent a request for a chat. */
export function rawRequest(port: number, body: unknown): Socket {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const socket = connect(port, "127.0.0.1");
  socket.write(`POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  return socket;
}
