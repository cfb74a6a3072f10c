/** Where a command writes, and what it reads of its surroundings. */

export interface Terminal {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Result of the command, to stdout; ends its own lines. */
  print(text: string): void;
  /** A mistake or a failure, to stderr, after the command's name. */
  fail(message: string): void;
}

export function processTerminal(): Terminal {
  return {
    environment: process.env,
    print: (text) => process.stdout.write(text),
    fail: (message) => process.stderr.write(`pagoda: ${message}\n`),
  };
}
