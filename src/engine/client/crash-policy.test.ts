import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { type CrashRecord, cleanRecord, judgeDeath, mayJoin, submissionOrder } from "./crash-policy.js";

/** A request that makes `tokens` tokens; one with a poison kills the engine that tries to make that one. */
interface Spec {
  readonly tokens: number;
  readonly poison: number | undefined;
}

interface Request {
  readonly id: number;
  readonly spec: Spec;
  made: number;
  record: CrashRecord;
}

interface World {
  readonly engines: Map<number, Request>[];
  waiting: Request[];
  readonly answered: Set<number>;
  readonly convicted: Set<number>;
  deaths: number;
}

function submitAll(world: World): void {
  for (const request of submissionOrder(world.waiting, ({ record }) => record)) {
    const engine = world.engines.find((present) =>
      mayJoin(
        request.record,
        [...present.values()].map(({ record }) => record),
      ),
    );
    if (engine === undefined) continue;
    engine.set(request.id, request);
    world.waiting = world.waiting.filter((other) => other !== request);
  }
}

function die(world: World, engine: Map<number, Request>): void {
  world.deaths += 1;
  const { records, convicted } = judgeDeath(new Map([...engine.values()].map((request) => [request, request.record])));
  for (const [request, record] of records) request.record = record;
  world.waiting = [...records.keys(), ...world.waiting].sort((a, b) => a.id - b.id);
  engine.clear();
  if (convicted === undefined) return;
  world.convicted.add(convicted.id.id);
  for (const request of [...world.waiting, ...world.engines.flatMap((present) => [...present.values()])]) request.record = cleanRecord;
}

/** Lets the engines work in an order that `choices` decides, until every request has been answered or convicted. */
function run(specs: readonly Spec[], engineCount: number, choices: readonly number[], killsFromOutside: number): World {
  const waiting = specs.map((spec, id): Request => ({ id, spec, made: 0, record: cleanRecord }));
  const world: World = { engines: Array.from({ length: engineCount }, () => new Map()), waiting, answered: new Set(), convicted: new Set(), deaths: 0 };
  let kills = killsFromOutside;
  for (let turn = 0; world.answered.size + world.convicted.size < specs.length; turn++) {
    if (turn > 100_000) throw new Error("Some requests wait for ever.");
    submitAll(world);
    const choice = choices[turn % choices.length] ?? 0;
    const busy = world.engines.filter((engine) => engine.size > 0);
    const engine = busy[choice % busy.length];
    if (engine === undefined) throw new Error("Requests wait, but no engine may take any.");
    if (kills > 0 && choice % 13 === 0) {
      kills -= 1;
      die(world, engine);
      continue;
    }
    const request = [...engine.values()][choice % engine.size] as Request;
    if (request.spec.poison === request.made) die(world, engine);
    else advance(world, engine, request);
  }
  return world;
}

function advance(world: World, engine: Map<number, Request>, request: Request): void {
  request.made += 1;
  request.record = cleanRecord;
  if (request.made < request.spec.tokens) return;
  engine.delete(request.id);
  world.answered.add(request.id);
}

const arbitrarySpec = fc.record({ tokens: fc.integer({ min: 1, max: 6 }), poison: fc.option(fc.integer({ min: 0, max: 5 }), { nil: undefined }) });

function isPoisonous({ poison, tokens }: Spec): boolean {
  return poison !== undefined && poison < tokens;
}

const arbitraryChoices = fc.array(fc.nat(1000), { minLength: 1, maxLength: 50 });

describe("with any number of poisonous requests, engines and orders of work", () => {
  test.prop([fc.array(arbitrarySpec, { minLength: 1, maxLength: 12 }), fc.integer({ min: 1, max: 3 }), arbitraryChoices])(
    "every poisonous request is given up, every other one is answered, and the deaths are few",
    (specs, engines, choices) => {
      const world = run(specs, engines, choices, 0);
      const ids = specs.map((_, id) => id);
      const poisonous = ids.filter((id) => isPoisonous(specs[id] as Spec));
      expect([...world.convicted].sort((a, b) => a - b)).toEqual(poisonous);
      expect([...world.answered].sort((a, b) => a - b)).toEqual(ids.filter((id) => !poisonous.includes(id)));
      // Each poison kills at most four times while it is hunted; while one is, each other may have killed as often.
      expect(world.deaths).toBeLessThanOrEqual(4 * poisonous.length ** 2);
    },
  );

  test.prop([fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 3 }), arbitraryChoices])(
    "two kills from outside fail no request",
    (requests, engines, choices) => {
      const specs = Array.from({ length: requests }, () => ({ tokens: 3, poison: undefined }));
      const world = run(specs, engines, [0, ...choices], 2);
      expect(world.answered.size).toBe(requests);
      expect(world.deaths).toBeGreaterThanOrEqual(1);
    },
  );
});

describe("one poisonous request", () => {
  test("alone is convicted at the third death", () => {
    const world = run([{ tokens: 5, poison: 3 }], 1, [0], 0);
    expect(world).toMatchObject({ deaths: 3, convicted: new Set([0]) });
  });

  test("in company is convicted at the fourth death at the latest", () => {
    const specs = [...Array.from({ length: 15 }, () => ({ tokens: 6, poison: undefined })), { tokens: 6, poison: 2 }];
    const world = run(specs, 1, [0, 5, 11, 7, 3, 15, 2, 9], 0);
    expect(world.convicted).toEqual(new Set([15]));
    expect(world.answered.size).toBe(15);
    expect(world.deaths).toBeGreaterThanOrEqual(3);
    expect(world.deaths).toBeLessThanOrEqual(4);
  });
});

describe("who may join an engine", () => {
  const of = (...strikes: number[]): CrashRecord[] => strikes.map((count) => ({ strikes: count }));

  test.each([
    { strikes: 0, present: of(0, 1, 2), expected: true },
    { strikes: 1, present: of(0, 2), expected: true },
    { strikes: 2, present: of(0, 1), expected: true },
    { strikes: 2, present: of(2), expected: false },
    { strikes: 0, present: of(3), expected: false },
    { strikes: 3, present: of(), expected: true },
    { strikes: 3, present: of(0), expected: false },
  ])("$strikes strikes beside $present: $expected", ({ strikes, present, expected }) => {
    expect(mayJoin({ strikes }, present)).toBe(expected);
  });
});
