import { describe, expect, test } from "vitest";
import { assembleLines, type LogLevel } from "./log.js";

function collect(messages: readonly (readonly [number, string])[]): [LogLevel, string][] {
  const lines: [LogLevel, string][] = [];
  const add = assembleLines((level, text) => lines.push([level, text]));
  for (const [level, text] of messages) add(level, text);
  return lines;
}

const [debug, info, warn, error, goOn] = [1, 2, 3, 4, 5];

describe("the libraries' log", () => {
  test("pieces become one line with the level of the first", () => {
    expect(
      collect([
        [error, "tensor "],
        [goOn, "is "],
        [goOn, "missing\n"],
      ]),
    ).toEqual([["error", "tensor is missing"]]);
  });

  test("one piece may hold several lines", () => {
    expect(collect([[warn, "one\ntwo\n"]])).toEqual([
      ["warn", "one"],
      ["warn", "two"],
    ]);
  });

  test("a new message ends an unfinished one", () => {
    expect(
      collect([
        [info, "unfinished"],
        [debug, "next\n"],
      ]),
    ).toEqual([
      ["info", "unfinished"],
      ["debug", "next"],
    ]);
  });

  test("blank lines are dropped", () => {
    expect(
      collect([
        [info, "\n"],
        [goOn, "  \n"],
      ]),
    ).toEqual([]);
  });
});
