/** The commands, their options and their help. */
import { Command } from "commander";
import { addConfigCommand } from "./config-command.js";
import { packageVersion } from "./package-version.js";
import { addServeCommand } from "./serve-command.js";
import type { Terminal } from "./terminal.js";

/** All commands. Parsing throws `CommanderError` after a mistake was printed, and after help and version. */
export function createProgram(terminal: Terminal): Command {
  const program = new Command("pagoda")
    .description("Serves language models behind an OpenAI-compatible API.")
    .version(packageVersion(), "-V, --version", "Print the version.")
    .helpOption("-h, --help", "Print this help.")
    .helpCommand("help [command]", "Print the help of a command.")
    .configureOutput({
      writeOut: (text) => terminal.print(text),
      // What comes here is the help of a command that was given no subcommand: an answer, not a mistake.
      writeErr: (text) => terminal.print(text),
      outputError: (text) => terminal.fail(oneLine(text)),
    })
    .exitOverride()
    .addHelpText(
      "after",
      `
Examples:
  $ pagoda serve                              the built-in model on http://127.0.0.1:8000
  $ pagoda serve --model ./chat.gguf          any GGUF file
  $ pagoda config reference                   every configuration key`,
    );
  addServeCommand(program, terminal);
  addConfigCommand(program, terminal);
  return program;
}

/** Commander's message of two lines ("error: ...", "(Did you mean ...?)") as one. */
function oneLine(text: string): string {
  return text
    .replace(/^error: /, "")
    .trim()
    .replace(/\s*\n\s*/g, " ");
}
