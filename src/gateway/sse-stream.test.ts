import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect } from "node:net";
import { afterEach, expect, it } from "vitest";
import { openSseStream, type SseStream, type SseStreamOptions } from "./sse-stream.js";

let stop = () => {};
afterEach(() => stop());

/** Opens a stream to a client of which only the socket is there. */
async function opened(options: Partial<SseStreamOptions> = {}) {
  let slow: unknown;
  const { promise, resolve } = withResolver<{ stream: SseStream; response: ServerResponse }>();
  const server = createServer((_request, response) => {
    const stream = openSseStream(response, {
      bufferBytes: 100_000,
      slowReaderTimeoutMs: 60_000,
      pingIntervalMs: 60_000,
      headers: { "x-request-id": "r" },
      onSlowReader: (reason) => {
        slow = reason;
      },
      ...options,
    });
    resolve({ stream, response });
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  stop = () => {
    socket.destroy();
    server.close();
    server.closeAllConnections();
  };
  socket.write("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  return { socket, slow: () => slow, ...(await promise) };
}

function withResolver<T>() {
  let resolve: (value: T) => void = () => undefined;
  const promise = new Promise<T>((done) => {
    resolve = done;
  });
  return { promise, resolve };
}

it("gives the reader everything in order, in pieces that split no character", async () => {
  const { socket, stream } = await opened();
  socket.pause();
  const events = Array.from({ length: 2000 }, (_, index) => `data: ${index} ${"👋".repeat(40)}\n\n`);
  for (const event of events) stream.write(event);
  const body = new Promise<string>((resolve) => {
    let bytes = Buffer.alloc(0);
    socket.on("data", (data: Buffer) => {
      bytes = Buffer.concat([bytes, data]);
    });
    socket.on("close", () => resolve(bytes.toString()));
  });
  socket.resume();
  await stream.end();
  const unchunked = (await body)
    .split("\r\n\r\n")
    .slice(1)
    .join("\r\n\r\n")
    .replaceAll(/(^|\r\n)[0-9a-f]+\r\n/g, "")
    .replace(/\r\n$/, "")
    .trimEnd();
  expect(`${unchunked}\n\n`).toBe(events.join(""));
});

it("says when its buffer is full, and wakes who waits for room when the reader is gone", async () => {
  const { socket, stream } = await opened();
  socket.pause();
  while (stream.hasRoom) {
    stream.write("x".repeat(50_000));
    await new Promise((resolve) => setImmediate(resolve));
  }
  let isAwake = false;
  const waiting = stream.room().then(() => {
    isAwake = true;
  });
  await new Promise((resolve) => setImmediate(resolve));
  expect(isAwake).toBe(false);
  socket.destroy();
  await waiting;
  await stream.end();
  stream.write("after the end"); // harmless
});

it("cuts off a reader that takes nothing, also when only the end is left to send", async () => {
  const { socket, slow, stream } = await opened({ slowReaderTimeoutMs: 100, bufferBytes: 100_000_000 });
  socket.pause();
  stream.write("x".repeat(20_000_000));
  await stream.end();
  expect(slow()).toMatchObject({ code: "slow_reader" });
});

it("leaves a silent stream alone: silence is not the reader's fault", async () => {
  const { socket, slow, stream } = await opened({ slowReaderTimeoutMs: 20, pingIntervalMs: 10 });
  const pings = new Promise<void>((resolve) => {
    let text = "";
    socket.on("data", (data) => {
      text += data.toString();
      if (text.split(":\n\n").length > 10) resolve();
    });
  });
  await pings; // several times the timeout later
  expect(slow()).toBeUndefined();
  await stream.end();
});
