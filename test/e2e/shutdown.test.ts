/** The end of the server: what is under way is finished, or told that it is not, and no process is left. */
import type OpenAI from "openai";
import { afterEach, describe, expect, test, vi } from "vitest";
import { processGone } from "../engine/harness.js";
import { clients } from "../gateway/clients.js";
import { ask, clientsOf, expectAllAnswered, pieces } from "./asking.js";
import { type Server, startServer } from "./server.js";
import { cycles, forced } from "./tasks.js";

let server: Server | undefined;
afterEach(() => {
  server?.command.process.kill("SIGKILL");
  server = undefined;
});

async function start(...settings: string[]): Promise<Server> {
  server = await startServer(...settings);
  return server;
}

describe("SIGTERM during 8 streams", () => {
  test("finishes them, refuses new requests, and ends with code 0 and without engines", async () => {
    const server = await start();
    const { come, onText } = pieces(8 * 10);
    const engines = server.engines();
    expect(engines).toHaveLength(1);
    const tasks = cycles.slice(0, 8).map((cycle) => forced(cycle, 500));
    const answers = expectAllAnswered(server, tasks, { stream: true, onText });
    await come;
    const ended = server.stop();
    await vi.waitFor(async () => expect((await fetch(`${server.url}/ready`)).status).toBe(503), { timeout: 20_000, interval: 5 });
    const refused = await server.post({ messages: [{ role: "user", content: "Hello!" }] });
    expect([refused.status, refused.headers.get("x-should-retry")]).toEqual([503, "true"]);
    expect(await refused.json()).toMatchObject({ error: { code: "shutting_down" } });
    await answers;
    expect(await ended).toMatchObject({ code: 0, signal: null });
    await Promise.all(engines.map(processGone));
  });

  test("with too short a grace tells them so, and ends with code 0", async () => {
    const server = await start("server.shutdownGrace=1ms");
    const { come, onText } = pieces(8 * 10);
    const [engine = 0] = server.engines();
    const both = clientsOf(server);
    const texts: string[] = Array(8).fill("");
    const tasks = cycles.slice(0, 8).map((cycle) => forced(cycle, 1500));
    const answers = Promise.allSettled(
      tasks.map(({ fields }, index) => {
        const take = (text: string): void => {
          texts[index] += text;
          onText();
        };
        return ask(both[index % 2] as OpenAI, fields, { stream: true, onText: take });
      }),
    );
    await come;
    const ended = server.stop();
    (await answers).forEach((answer, index) => {
      const [, Client] = clients[index % 2] ?? clients[0];
      expect(answer.status).toBe("rejected");
      const { reason } = answer as PromiseRejectedResult;
      expect(reason).toBeInstanceOf(Client.APIError);
      expect(reason).toMatchObject({ code: "shutting_down", type: "unavailable_error" });
      expect(tasks[index]?.text.startsWith(texts[index] as string)).toBe(true); // what was sent before is not touched
      expect(texts[index]?.length).toBeLessThan(1500);
    });
    expect(await ended).toMatchObject({ code: 0, signal: null });
    await processGone(engine);
  });
});

test("a gateway that is killed with -9 leaves no engine behind, though it computes", async () => {
  const server = await start();
  const { come, onText } = pieces(10);
  const [engine = 0] = server.engines();
  const [client] = clientsOf(server);
  // Far more work than can be done within this test's time limit: the engine does not end because it has nothing left to do.
  const answer = ask(client, { ...forced("abcdefgh", 1900).fields, n: 128 }, { stream: true, onText });
  answer.catch(() => undefined);
  await come;
  server.command.process.kill("SIGKILL");
  await processGone(engine);
  await expect(answer).rejects.toThrow();
});
