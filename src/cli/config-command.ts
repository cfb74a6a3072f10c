/** `pagoda config`: shows and checks configuration. */
import type { Command } from "commander";
import { configReference, formatConfig, loadConfig } from "../config/index.js";
import { addConfigOptions, configOf } from "./config-options.js";
import type { Terminal } from "./terminal.js";

export function addConfigCommand(program: Command, terminal: Terminal): void {
  const config = program
    .command("config")
    .description("Show and check configuration.")
    .addHelpText(
      "after",
      `
Examples:
  $ pagoda config reference
  $ pagoda config print --config pagoda.yaml --set server.port=9000
  $ pagoda config check pagoda.yaml`,
    );

  config
    .command("reference")
    .description("Print every key with its values, default, meaning and environment variable, in Markdown.")
    .addHelpText("after", "\nExample:\n  $ pagoda config reference > configuration.md")
    .action(() => terminal.print(configReference()));

  const print = config
    .command("print")
    .description("Print the configuration that file, environment and options come to, as YAML that can be used as a file.")
    .addHelpText(
      "after",
      `
Examples:
  $ pagoda config print
  $ PAGODA_SERVER_PORT=9000 pagoda config print --config pagoda.yaml`,
    );
  addConfigOptions(print).action(() => terminal.print(formatConfig(configOf(print, terminal))));

  config
    .command("check")
    .description("Check a configuration file; exit code 2 and a message for each problem if it has any.")
    .argument("<file>", "YAML file to check")
    .addHelpText("after", "\nExample:\n  $ pagoda config check pagoda.yaml")
    .action((file: string) => {
      loadConfig({ file });
      terminal.print(`${file} is a valid configuration.\n`);
    });
}
