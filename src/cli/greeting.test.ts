import { expect, test } from "vitest";
import { greeting } from "./greeting.js";

test.each([
  ["127.0.0.1", "http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/"],
  ["0.0.0.0", "http://0.0.0.0:8000", "http://127.0.0.1:8000/v1/"],
  ["::", "http://[::]:8000", "http://[::1]:8000/v1/"],
  ["localhost", "http://localhost:8000", "http://localhost:8000/v1/"],
])("on %s it names what is listened on, and a command that reaches it", (host, listened, called) => {
  const [ready, command, ...rest] = greeting(host, 8000, "it's").split("\n");
  expect(ready).toBe(`pagoda ready on ${listened}`);
  expect(command).toContain(`curl ${called}chat/completions`);
  expect(command).toContain(`it'\\''s`);
  expect(rest).toEqual([""]);
});
