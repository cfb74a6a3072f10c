/** Random schedules for property tests: small pools, prompts that share prefixes, cancels at any moment. */
import fc from "fast-check";
import type { SchedulerOptions } from "../../src/scheduler/options.js";
import type { Arrival } from "./world.js";

export interface Schedule {
  readonly options: SchedulerOptions;
  readonly arrivals: readonly Arrival[];
  readonly stepLimit: number;
}

const geometry = fc.record({
  pageTokens: fc.integer({ min: 1, max: 6 }),
  layout: fc.constantFrom("unified" as const, "streams" as const),
  slots: fc.integer({ min: 1, max: 6 }),
  pages: fc.integer({ min: 3, max: 14 }),
  canTrim: fc.boolean(),
});

const arrival = fc.record({
  step: fc.integer({ min: 0, max: 30 }),
  /** Prompts of one family begin alike. */
  family: fc.integer({ min: 0, max: 1 }),
  shared: fc.integer({ min: 0, max: 20 }),
  own: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 12 }),
  maxTokens: fc.integer({ min: 0, max: 16 }),
  choices: fc.constantFrom(1, 1, 1, 2, 3),
  salt: fc.constantFrom("", "", "other"),
  cancel: fc.option(fc.record({ choice: fc.integer({ min: 0, max: 2 }), afterSteps: fc.integer({ min: 0, max: 12 }), during: fc.boolean() }), {
    nil: undefined,
    freq: 4,
  }),
});

export function arbitrarySchedule(fixed: { layout?: "unified" | "streams"; canTrim?: boolean } = {}): fc.Arbitrary<Schedule> {
  return fc
    .record({
      geometry,
      arrivals: fc.array(arrival, { minLength: 1, maxLength: 14 }),
      batch: fc.integer({ min: 0, max: 20 }),
      sequences: fc.integer({ min: 1, max: 6 }),
      queue: fc.constantFrom(0, 3, 1000, 1000, 1000),
      context: fc.integer({ min: 2, max: 60 }),
      sharePrefixes: fc.constantFrom(true, true, true, false),
    })
    .map((raw) => build({ ...raw, geometry: { ...raw.geometry, ...fixed } }));
}

type Made<T> = T extends fc.Arbitrary<infer Value> ? Value : never;

type Raw = { geometry: Made<typeof geometry> } & {
  arrivals: readonly Made<typeof arrival>[];
  batch: number;
  sequences: number;
  queue: number;
  context: number;
  sharePrefixes: boolean;
};

function build({ geometry: shape, arrivals, batch, sequences, queue, context, sharePrefixes }: Raw): Schedule {
  const slots = Array.from({ length: shape.slots }, (_, index) => index);
  const arenas = shape.layout === "unified" ? [{ pages: shape.pages, slots }] : slots.map((slot) => ({ pages: shape.pages, slots: [slot] }));
  const maxSequences = Math.min(sequences, shape.slots);
  const options: SchedulerOptions = {
    maxSequences,
    maxBatchTokens: maxSequences + batch,
    maxQueuedRequests: queue,
    maxQueuedTokens: 1_000_000,
    contextTokens: Math.min(context, shape.pages * shape.pageTokens),
    sharePrefixes,
    kv: { pageTokens: shape.pageTokens, arenas, canTrim: shape.canTrim },
  };
  const built = arrivals.map((one, index): Arrival => {
    const prompt = Int32Array.from([...Array.from({ length: one.shared }, (_, i) => 1 + ((i * (one.family + 2)) % 4)), ...one.own]);
    return {
      step: one.step,
      request: {
        id: `r${index}`,
        promptTokens: prompt,
        sequences: Array.from({ length: one.choices }, (_, choice) => ({ id: `r${index}/${choice}`, outputTokens: [] })),
        maxTokens: one.maxTokens,
        salt: one.salt,
        ignoreEndOfGeneration: false,
      },
      ...(one.cancel === undefined ? {} : { cancel: one.cancel }),
    };
  });
  const work = built.reduce((sum, { request }) => sum + request.sequences.length * (request.promptTokens.length + request.maxTokens + 2), 0);
  // Everything alone, one token a step, with each sequence put out and computed anew several times: what takes longer waits for ever.
  return { options, arrivals: built, stepLimit: 60 + work * 8 };
}
