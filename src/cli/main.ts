/** The `pagoda` command: turns arguments into an exit code. 0 is success, 1 a failure while it works, 2 a mistake in what it was told. */
import { CommanderError } from "commander";
import { asPagodaError, type PagodaError } from "../errors.js";
import { createProgram } from "./program.js";
import { processTerminal, type Terminal } from "./terminal.js";

/** How long after its end a command may leave something open, such as a connection to a client, before the process ends anyway. */
const lingerMs = 1000;

/** Runs one command as this process's whole work: sets its exit code and lets it end. */
export async function main(args: readonly string[]): Promise<void> {
  process.exitCode = await run(args);
  setTimeout(() => process.exit(), lingerMs).unref();
}

/** Runs one command to its end. Never rejects: a failure is one clear message on stderr and the exit code. */
export async function run(args: readonly string[], terminal: Terminal = processTerminal()): Promise<number> {
  try {
    await createProgram(terminal).parseAsync(args, { from: "user" });
    return 0;
  } catch (thrown) {
    // Commander has already printed the help, the version or the mistake. "commander.help" is a command without its subcommand.
    if (thrown instanceof CommanderError) return thrown.exitCode === 0 || thrown.code === "commander.help" ? 0 : 2;
    const error = asPagodaError(thrown);
    terminal.fail(describe(error));
    return error.code === "config_invalid" ? 2 : 1;
  }
}

/** An error without a code is our own mistake: then the stack is what helps. */
function describe(error: PagodaError): string {
  if (error.code !== "internal_error") return error.message;
  return error.cause instanceof Error ? (error.cause.stack ?? error.cause.message) : String(error.cause ?? error.message);
}
