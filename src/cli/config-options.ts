/** The options that set configuration, the same for every command that takes a configuration. */
import type { Command } from "commander";
import { type Config, loadConfig } from "../config/index.js";
import type { Terminal } from "./terminal.js";

interface ConfigOptions {
  readonly config?: string;
  readonly model?: string;
  readonly alias?: readonly string[];
  readonly chatTemplate?: string;
  readonly host?: string;
  readonly port?: string;
  readonly set?: readonly string[];
}

/** Adds them to a command. */
export function addConfigOptions(command: Command): Command {
  return command
    .option("-c, --config <file>", "YAML file with the configuration.")
    .option("-m, --model <source>", "Model to serve instead of the configured ones: builtin:NAME or the path of a GGUF file.")
    .option("--alias <name>", "Further name of the first model; can be repeated.", collect)
    .option("--chat-template <name|file>", "Chat template of the first model instead of its own.")
    .option("--host <host>", "Address to listen on (default: 127.0.0.1).")
    .option("-p, --port <port>", "Port to listen on (default: 8000).")
    .option("--set <key=value>", "Any configuration key, such as kv.tokens=8192; can be repeated.", collect);
}

/**
 * The configuration that these options, the environment and the file come to.
 * @throws PagodaError `config_invalid`.
 */
export function configOf(command: Command, terminal: Terminal): Config {
  const { config: file, set: sets, ...flags } = command.opts<ConfigOptions>();
  return loadConfig({ environment: terminal.environment, flags, ...(file === undefined ? {} : { file }), ...(sets === undefined ? {} : { sets }) });
}

function collect(value: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), value];
}
