/** `pagoda serve`: options and help; what it does is in serve.ts. */
import type { Command } from "commander";
import { addConfigOptions, configOf } from "./config-options.js";
import type { Terminal } from "./terminal.js";

export function addServeCommand(program: Command, terminal: Terminal): void {
  const command = program
    .command("serve")
    .description("Serve models over HTTP until the process gets SIGTERM or SIGINT.")
    .addHelpText(
      "after",
      `
Without options it serves builtin:pagoda-tiny on http://127.0.0.1:8000. Options override environment variables (PAGODA_SERVER_PORT),
which override the file. 'pagoda config reference' explains every key.

A signal lets running answers finish within server.shutdownGrace; a second one ends at once.
Exit codes: 0 after a signal, 1 when a model cannot be loaded or the port is in use, 2 for a mistake in options or configuration.

Examples:
  $ pagoda serve
  $ pagoda serve --model ./chat.gguf --alias gpt-4o-mini --port 9000
  $ pagoda serve --config pagoda.yaml --set scheduler.maxSequences=8`,
    );
  addConfigOptions(command).action(async () => {
    const config = configOf(command, terminal);
    // Loaded here and not above: help and configuration must not wait for the whole server's code.
    const { serve } = await import("./serve.js");
    await serve(config, terminal);
  });
}
