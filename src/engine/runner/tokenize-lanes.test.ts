import { expect, test } from "vitest";
import { inLanes, shortCharacters, type TokenizeSegments } from "./tokenize-lanes.js";

/** A tokenizer whose calls stay open until the test ends them. */
function heldTokenizer() {
  const running = new Map<string, () => void>();
  const tokenize: TokenizeSegments = async ([segment]) => {
    const name = segment?.text.trim() ?? "";
    await new Promise<void>((resolve) => running.set(name, resolve));
    running.delete(name);
    return [[name.length]];
  };
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  return { running: () => [...running.keys()], end: (name: string) => running.get(name)?.(), settled, run: inLanes(tokenize) };
}

const text = (name: string, characters: number) => [{ text: name.padEnd(characters), parseSpecial: false }];

test("short texts do not wait for long ones, of which one runs at a time", async () => {
  const { running, end, settled, run } = heldTokenizer();
  const long = ["long1", "long2", "long3"].map((name) => run(text(name, shortCharacters + 1), false));
  const short = ["a", "b", "c"].map((name) => run(text(name, shortCharacters), false));
  await settled();
  expect(running()).toEqual(["long1", "a", "b"]);
  end("a");
  await short[0];
  await settled();
  expect(running()).toEqual(["long1", "b", "c"]);
  end("long1");
  await long[0];
  await settled();
  expect(running()).toEqual(["b", "c", "long2"]);
});

test("several segments count together", async () => {
  const { running, settled, run } = heldTokenizer();
  void run(text("first", shortCharacters + 1), false);
  void run([...text("half", shortCharacters / 2 + 1), ...text("other half", shortCharacters / 2)], false);
  await settled();
  expect(running()).toEqual(["first"]);
});
