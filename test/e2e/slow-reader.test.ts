/** A client that takes nothing of its stream: it is cut off, and nobody else notices. */
import { once } from "node:events";
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, test, vi } from "vitest";
import { rawRequest } from "../gateway/serving.js";
import { expectAllAnswered } from "./asking.js";
import { type Server, startServer, untilFigure, untilIdle } from "./server.js";
import { forced, questions } from "./tasks.js";

let server: Server;
beforeAll(async () => {
  server = await startServer("server.streamBuffer=64KiB", "server.slowReaderTimeout=500ms", "scheduler.maxSequences=16");
});
afterAll(async () => {
  await server.stop();
});

const mebibyte = 1024 * 1024;

/** A request for far more bytes than the system buffers for a connection: long choices with the likeliest alternatives of each token. */
function stalledReader(): Socket {
  const { fields } = forced("abcdefgh", 1900);
  const socket = rawRequest(server.port, { ...fields, stream: true, n: 6, logprobs: true, top_logprobs: 20 });
  socket.pause();
  return socket;
}

test("two stalled readers are cut off with a reason; the others get their answers, and memory stays bounded", async () => {
  await expectAllAnswered(server, questions, { stream: true });
  const before = await server.figure("process_resident_memory_bytes");
  let peak = before;
  const cuts = () => server.figures().then((figures) => figures.get('pagoda_streams_cut_total{reason="slow_reader"}') ?? 0);

  const stalled = [stalledReader(), stalledReader()];
  await untilFigure(server, "vllm:num_requests_running", 12);
  const others = expectAllAnswered(server, questions.slice(0, 16), { stream: true });
  await vi.waitFor(
    async () => {
      peak = Math.max(peak, await server.figure("process_resident_memory_bytes"));
      expect(await cuts()).toBe(2);
    },
    { timeout: 60_000, interval: 20 },
  );
  await others;
  await untilIdle(server);
  expect(server.log.filter(({ msg }) => msg === "stream cut")).toMatchObject([{ code: "slow_reader" }, { code: "slow_reader" }]);
  expect(await server.figure("vllm:request_success_total", { finished_reason: "abort" })).toBe(12);
  expect(peak - before).toBeLessThan(96 * mebibyte);

  // What the system had buffered is still there to read; the end of the answer is not.
  for (const socket of stalled) {
    let received = 0;
    let tail = "";
    socket.on("error", () => undefined); // a reset is as good an end as any
    socket.on("data", (bytes: Buffer) => {
      received += bytes.length;
      tail = (tail + bytes.toString("latin1")).slice(-1000);
    });
    socket.resume();
    if (!socket.closed) await once(socket, "close");
    expect(received).toBeGreaterThan(0);
    expect(received).toBeLessThan(32 * mebibyte);
    expect(tail).not.toContain("[DONE]");
  }
  await expectAllAnswered(server, questions.slice(0, 8));
});
