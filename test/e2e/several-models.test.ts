/** Several models in one server, and several engines for one model. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { clients } from "../gateway/clients.js";
import { ask, clientsOf, expectAllAnswered, expectedAnswer, pieces, refusal } from "./asking.js";
import { type Server, startServer, untilEngines, untilFigure, untilIdle } from "./server.js";
import { cycles, forced, question, questions, type Task } from "./tasks.js";

vi.setConfig({ testTimeout: 120_000 }); // engines start and compute in the midst of tests, and the machine may be busy

let server: Server;

describe("two models of one file, with different templates", () => {
  const folder = mkdtempSync(join(tmpdir(), "pagoda-e2e-"));
  const template = join(folder, "japan.jinja");
  writeFileSync(template, "{{ '<|im_start|>user\nWhat is the capital of Japan?<|im_end|>\n<|im_start|>assistant\n' }}");
  const france = question("What is the capital of France?", "The capital of France is Paris.");
  const tokyo = "The capital of Japan is Tokyo.";

  beforeAll(async () => {
    const plain = "{name: plain, source: builtin:pagoda-tiny, aliases: [simple]}";
    const japan = `{name: org/japan, source: builtin:pagoda-tiny, chatTemplate: ${template}, kv: {tokens: 4096}}`;
    server = await startServer(`models=[${plain}, ${japan}]`);
    await untilEngines(server, 2);
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  describe.each(clients.map(([name, Client], index) => [name, Client, index] as const))("%s", (_name, Client, index) => {
    const client = () => clientsOf(server)[index] as OpenAI;

    test("each name, and each alias, is answered by its model", async () => {
      const answerOf = async (model: string) => {
        const { choices, ...answer } = await client().chat.completions.create({ ...france.fields, model, stream: false });
        return [answer.model, choices[0]?.message.content];
      };
      expect(await Promise.all(["plain", "org/japan", "simple"].map(answerOf))).toEqual([
        ["plain", france.text],
        ["org/japan", tokyo],
        ["plain", france.text],
      ]);
    });

    test("a name that no model has is 404", async () => {
      const thrown = await refusal(client(), { ...france.fields, model: "gpt-4" });
      expect(thrown).toBeInstanceOf(Client.NotFoundError);
      expect(thrown).toMatchObject({ status: 404, code: "model_not_found", param: "model", message: expect.stringMatching(/gpt-4.*plain.*org\/japan/) });
    });

    test("both are listed and found by name", async () => {
      const { data } = await client().models.list();
      expect(data.map(({ id }) => id)).toEqual(["plain", "org/japan"]);
      expect(await client().models.retrieve("org/japan")).toMatchObject({ id: "org/japan", object: "model" });
    });
  });

  test("a request without a name is for the first one; fingerprints tell the templates apart", async () => {
    const answer = async (fields: object) => (await (await server.post({ ...france.fields, ...fields })).json()) as OpenAI.ChatCompletion;
    expect((await answer({})).choices[0]?.message.content).toBe(france.text);
    const [plain, japan] = [await answer({ model: "plain" }), await answer({ model: "org/japan" })];
    expect(plain.system_fingerprint).toBe((await answer({ model: "simple" })).system_fingerprint);
    expect(plain.system_fingerprint).not.toBe(japan.system_fingerprint);
  });

  test("the loss of one model's engine leaves the other model alone", async () => {
    const [client] = clientsOf(server);
    const long = forced("abcdefgh", 1000);
    const answers = ["plain", "org/japan"].map((model) => ask(client, { ...long.fields, model }, { stream: true }));
    for (const model of ["plain", "org/japan"]) await untilFigure(server, "vllm:num_requests_running", 1, { model_name: model });
    await server.killEngine();
    for (const answer of answers) expect(await answer).toMatchObject(expectedAnswer(long));
    const restarts = await Promise.all(["plain", "org/japan"].map((model) => server.figure("pagoda_engine_restarts_total", { model_name: model })));
    expect(restarts.sort()).toEqual([0, 1]);
  });
});

describe("two engines for one model", () => {
  beforeAll(async () => {
    server = await startServer("engine.replicas=2", "scheduler.maxSequences=4");
    await untilEngines(server, 2);
  });
  afterAll(async () => {
    await server.stop();
  });

  test("both work: as many requests run at once as have room in two", async () => {
    const long = cycles.slice(0, 8).map((cycle) => forced(cycle, 300));
    const begun = new Set<string>();
    const unfinished = new Set(long);
    let together = 0;
    const both = clientsOf(server);
    const answers = long.map(async (task, index) => {
      const onText = (): void => {
        begun.add(task.text);
        if (unfinished.size === long.length) together = begun.size;
      };
      expect(await ask(both[index % 2] as OpenAI, task.fields, { stream: true, onText })).toMatchObject(expectedAnswer(task));
      unfinished.delete(task);
    });
    await Promise.all(answers);
    expect(together).toBe(8); // one engine has room for four
    await untilIdle(server);
  });

  test.each([0, 1])("nothing is lost when engine %i dies", async (which) => {
    await untilEngines(server, 2);
    const before = await server.figure("pagoda_engine_restarts_total");
    const { come, onText } = pieces(8 * 30);
    void come.then(() => server.killEngine(server.engines()[which]));
    const tasks = [...cycles.map((cycle) => forced(cycle, 200)), ...questions.slice(0, 8)];
    await expectAllAnswered(server, tasks, { stream: true, onText });
    expect(await server.figure("pagoda_engine_restarts_total")).toBe(before + 1);
    await untilIdle(server);
  });

  test("requests go on being answered by the one that is left, and by both when it is back", async () => {
    const [first] = questions as [Task, ...Task[]];
    await server.killEngine();
    await expectAllAnswered(server, Array(4).fill(first));
    await untilEngines(server, 2);
    await expectAllAnswered(server, questions.slice(0, 16));
  });
});
