import { fc, test } from "@fast-check/vitest";
import { describe, expect } from "vitest";
import { createStopMatcher } from "./stop-matcher.js";

/** Few letters, so that stop strings occur, overlap and almost occur. */
const chunk = fc.string({ unit: fc.constantFrom("a", "b", "c", "🙂"), maxLength: 4 });
const stopString = fc.string({ unit: fc.constantFrom("a", "b", "c", "🙂"), maxLength: 5 });

function textBeforeStop(text: string, stops: readonly string[]): string {
  const starts = stops.filter((stop) => stop !== "").map((stop) => text.indexOf(stop));
  const first = Math.min(...starts.filter((start) => start >= 0));
  return first === Number.POSITIVE_INFINITY ? text : text.slice(0, first);
}

describe("a stop matcher", () => {
  test.prop([fc.array(chunk, { maxLength: 12 }), fc.array(stopString, { maxLength: 4 })], { numRuns: 3000 })(
    "lets out the text before the earliest stop string, however the text is cut",
    (chunks, stops) => {
      const matcher = createStopMatcher(stops);
      const results = [...chunks.map((text) => matcher.push(text)), matcher.finish()];
      const text = chunks.join("");
      const expected = textBeforeStop(text, stops);
      expect(results.map((result) => result.text).join("")).toBe(expected);
      expect(results.at(-1)?.stopped).toBe(expected !== text || stops.some((stop) => stop !== "" && text.includes(stop)));
    },
  );

  test.prop([fc.array(chunk, { maxLength: 12 }), fc.array(stopString, { maxLength: 4 })])("holds back less than the longest stop string", (chunks, stops) => {
    const matcher = createStopMatcher(stops);
    let sent = 0;
    let received = 0;
    for (const text of chunks) {
      const result = matcher.push(text);
      if (result.stopped) return;
      sent += result.text.length;
      received += text.length;
      expect(received - sent).toBeLessThan(Math.max(1, ...stops.map((stop) => stop.length)));
    }
  });

  test("waits for a stop string that began before the one that is complete", () => {
    expect([createStopMatcher(["b", "abc"])].map((matcher) => [matcher.push("ab"), matcher.push("c")])).toEqual([
      [
        { text: "", stopped: false },
        { text: "", stopped: true },
      ],
    ]);
    const other = createStopMatcher(["b", "abc"]);
    expect([other.push("ab"), other.push("x")]).toEqual([
      { text: "", stopped: false },
      { text: "a", stopped: true },
    ]);
  });

  test("lets nothing out after a stop", () => {
    const matcher = createStopMatcher(["!"]);
    expect(matcher.push("a!b")).toEqual({ text: "a", stopped: true });
    expect(matcher.push("c")).toEqual({ text: "", stopped: true });
    expect(matcher.finish()).toEqual({ text: "", stopped: true });
  });

  test("a stop string with half a surrogate pair matches nothing", () => {
    const matcher = createStopMatcher(["\ud83d"]);
    expect(matcher.push("🙂")).toEqual({ text: "🙂", stopped: false });
  });
});
