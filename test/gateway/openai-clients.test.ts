/** The two official clients against the gateway. */
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { engineUnavailable, queueFull, shuttingDown } from "../../src/errors.js";
import { clients } from "./clients.js";
import { answering, type FakeJob } from "./fake-engine.js";
import { eventually, hello, type Serving, sample, startServing } from "./serving.js";

let serving: Serving;
beforeEach(async () => {
  serving = await startServing();
});
afterEach(() => serving.gateway.close(0));

describe.each(clients)("%s", (_name, Client) => {
  const client = () => new Client({ baseURL: `${serving.url}/v1`, apiKey: "none", maxRetries: 0 });
  const model = "pagoda-test";
  const messages = [...hello];

  it("gets a whole answer with usage", async () => {
    serving.engine.onSubmit = answering("Grüße 👋");
    const answer = await client().chat.completions.create({ model, messages });
    expect(answer.choices[0]).toEqual({
      index: 0,
      message: { role: "assistant", content: "Grüße 👋", refusal: null },
      logprobs: null,
      finish_reason: "stop",
    });
    const promptTokens = serving.engine.jobs[0]?.request.promptTokens.length;
    expect(answer.usage).toMatchObject({ prompt_tokens: promptTokens, completion_tokens: Buffer.byteLength("Grüße 👋") + 1 });
    expect(answer.usage?.total_tokens).toBe((promptTokens ?? 0) + Buffer.byteLength("Grüße 👋") + 1);
    expect(answer._request_id).toMatch(/^req_/);
  });

  it("streams the same text as it gets whole, and the helper puts it together", async () => {
    serving.engine.onSubmit = answering("Grüße 👋");
    const streamed = await client()
      .chat.completions.stream({ model, messages, stream_options: { include_usage: true } })
      .finalChatCompletion();
    const whole = await client().chat.completions.create({ model, messages });
    expect(streamed.choices[0]?.message.content).toBe("Grüße 👋");
    expect(streamed.choices[0]?.finish_reason).toBe("stop");
    expect(streamed.usage).toEqual(whole.usage);
  });

  it("gets n choices, each with its own seed", async () => {
    serving.engine.onSubmit = (job) => {
      for (const { index } of job.request.choices) {
        job.start(index);
        job.say(`answer ${index}`, index);
        job.end(index);
      }
    };
    const answer = await client().chat.completions.create({ model, messages, n: 3, seed: 7 });
    expect(answer.choices.map((choice) => [choice.index, choice.message.content])).toEqual([
      [0, "answer 0"],
      [1, "answer 1"],
      [2, "answer 2"],
    ]);
    expect(answer.usage?.completion_tokens).toBe(3 * ("answer 0".length + 1));
    expect(serving.engine.jobs[0]?.request.choices.map(({ seed }) => seed)).toEqual([7, 8, 9]);
    const streamed = await client().chat.completions.stream({ model, messages, n: 3 }).finalChatCompletion();
    expect(streamed.choices.map((choice) => choice.message.content)).toEqual(["answer 0", "answer 1", "answer 2"]);
  });

  it("gets log probabilities whose tokens are the content", async () => {
    serving.engine.onSubmit = answering("é!");
    const options = { model, messages, logprobs: true, top_logprobs: 2 };
    const whole = await client().chat.completions.create(options);
    const entries = whole.choices[0]?.logprobs?.content ?? [];
    expect(Buffer.from(entries.flatMap(({ bytes }) => bytes ?? [])).toString()).toBe("é!");
    expect(entries[0]?.top_logprobs.map(({ logprob }) => logprob)).toEqual([-0.5, -9999]);
    const streamed = await client().chat.completions.stream(options).finalChatCompletion();
    expect(streamed.choices[0]?.logprobs?.content).toEqual(entries);
  });

  it("gets the text before a stop string, and the engine is told to end", async () => {
    serving.engine.onSubmit = (job) => {
      job.start();
      job.say("one STOP two");
    };
    for (const stop of ["STOP", ["never", "STOP"]]) {
      const answer = await client().chat.completions.create({ model, messages, stop, logprobs: true });
      expect(answer.choices[0]).toMatchObject({ message: { content: "one " }, finish_reason: "stop" });
      expect(answer.choices[0]?.logprobs?.content).toHaveLength("one ".length);
    }
    const streamed = await client().chat.completions.stream({ model, messages, stop: "STOP" }).finalChatCompletion();
    expect(streamed.choices[0]?.message.content).toBe("one ");
    for (const job of serving.engine.jobs) expect(job.cancelled).toContain(0);
  });

  it("aborts a stream, and the engine's work with it", async () => {
    const stream = await client().chat.completions.create({ model, messages, stream: true });
    const job = await serving.engine.job(0);
    job.start();
    job.say("tick");
    for await (const chunk of stream) if (chunk.choices[0]?.delta.content === "t") break;
    await job.whenCancelled;
    await eventually(async () => (await sample(serving, 'vllm:num_requests_running{model_name="pagoda-test"}')) === 0);
    expect(await sample(serving, 'vllm:request_success_total{model_name="pagoda-test",finished_reason="abort"}')).toBe(1);
  });

  it("aborts a whole answer, and the engine's work with it", async () => {
    const controller = new AbortController();
    const answer = client().chat.completions.create({ model, messages }, { signal: controller.signal });
    const job = await serving.engine.job(0);
    controller.abort();
    await expect(answer).rejects.toBeInstanceOf(Client.APIUserAbortError);
    await job.whenCancelled;
  });

  it("throws each kind of error as its own class, with code, param and request id", async () => {
    const bad = await client()
      .chat.completions.create({ model, messages, temperature: 3 })
      .catch((thrown: unknown) => thrown);
    expect(bad).toBeInstanceOf(Client.BadRequestError);
    expect(bad).toMatchObject({ status: 400, code: "invalid_request", param: "temperature", type: "invalid_request_error" });
    expect((bad as InstanceType<typeof Client.APIError>).requestID).toMatch(/^req_/);

    const unknown = await client()
      .models.retrieve("nobody")
      .catch((thrown: unknown) => thrown);
    expect(unknown).toBeInstanceOf(Client.NotFoundError);
    expect(unknown).toMatchObject({ code: "model_not_found" });

    const refusals = [
      [queueFull({ waiting: 1, limit: 1, unit: "requests" }, { retryAfterSeconds: 3 }), Client.RateLimitError, "3"],
      [engineUnavailable({ model, waitedMs: 1 }), Client.InternalServerError, "5"],
      [shuttingDown({}, { retryAfterSeconds: 3600 }), Client.InternalServerError, "60"],
    ] as const;
    for (const [error, kind, retryAfter] of refusals) {
      serving.engine.onSubmit = () => Promise.reject(error);
      for (const stream of [false, true]) {
        const thrown = await client()
          .chat.completions.create({ model, messages, stream })
          .catch((reason: unknown) => reason);
        expect(thrown).toBeInstanceOf(kind);
        const { code, headers } = thrown as InstanceType<typeof Client.APIError>;
        expect([code, headers?.get("retry-after"), headers?.get("x-should-retry")]).toEqual([error.code, retryAfter, "true"]);
      }
    }
  });

  it("throws when an answer fails in the middle of its stream", async () => {
    serving.engine.onSubmit = (job: FakeJob) => {
      job.start();
      job.say("half");
      job.emit({ index: 0, finish: "error", error: { code: "boom", status: 500, type: "server_error", retryable: false, message: "It broke." } });
    };
    const stream = await client().chat.completions.create({ model, messages, stream: true });
    let text = "";
    const reading = (async () => {
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    })();
    await expect(reading).rejects.toThrow("It broke.");
    expect(text).toBe("half");
    expect(await sample(serving, 'pagoda_streams_cut_total{reason="boom"}')).toBe(1);
    const whole = await client()
      .chat.completions.create({ model, messages })
      .catch((thrown: unknown) => thrown);
    expect(whole).toMatchObject({ status: 500, code: "boom" });
  });

  it("lists models and finds one by its name", async () => {
    const all = await client().models.list();
    expect(all.data).toEqual([expect.objectContaining({ id: model, object: "model", created: 1_700_000_000, owned_by: "pagoda" })]);
    expect(await client().models.retrieve(model)).toMatchObject({ id: model });
  });
});
