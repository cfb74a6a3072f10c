/** Reads what `/metrics` answers. */
import { expect } from "vitest";

/** Parses the text format strictly: HELP and TYPE once for each family and before its samples, no sample twice, every value a number. */
export function parseExposition(text: string): Map<string, number> {
  expect(text.endsWith("\n")).toBe(true);
  const samples = new Map<string, number>();
  const types = new Map<string, string>();
  let family = "";
  for (const line of text.split("\n").filter((one) => one !== "")) {
    const help = /^# HELP (\S+) \S/.exec(line);
    const type = /^# TYPE (\S+) (counter|gauge|histogram|summary)$/.exec(line);
    const value = /^([A-Za-z_:][\w:]*)(\{(?:\w+="(?:[^"\\\n]|\\.)*",?)+\})? (\S+)$/.exec(line);
    if (help !== null) family = help[1] ?? "";
    else if (type !== null) {
      expect([type[1], types.has(family)]).toEqual([family, false]);
      types.set(family, type[2] ?? "");
    } else {
      expect(value, line).not.toBeNull();
      const [, name = "", labels = "", number = ""] = value ?? [];
      const suffix = types.get(family) === "histogram" ? "(_bucket|_sum|_count)" : "";
      expect(name).toMatch(new RegExp(`^${family}${suffix}$`));
      expect([number, samples.has(name + labels)]).not.toContain(true);
      // The lag of the event loop is measured between two scrapes, and not known when they come at once.
      if (!name.startsWith("nodejs_eventloop_lag_")) expect(Number(number), line).not.toBeNaN();
      samples.set(name + labels, Number(number));
    }
  }
  return samples;
}
