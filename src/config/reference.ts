/** The reference of all configuration keys, in Markdown, from the schema. */
import { variableName } from "./environment-source.js";
import { allKeys, type Key } from "./key-tree.js";
import { sectionMeanings } from "./schema.js";

const introduction = `# Configuration

<!-- Generated from the schema: npm run docs:configuration -->

Every key has a default; without any configuration Pagoda serves its built-in model on http://127.0.0.1:8000.

A key can be set in four places, each of which overrides those before it:

| place | example |
|---|---|
| default | see below |
| YAML file | \`pagoda serve --config pagoda.yaml\` |
| environment variable | \`PAGODA_SERVER_PORT=9000\` |
| command line | \`--set server.port=9000\`; \`--host\`, \`--port\`, \`--model\`, \`--alias\` and \`--chat-template\` are short for one key and override \`--set\` |

\`\`\`yaml
# pagoda.yaml
server:
  port: 9000
scheduler:
  maxQueuedRequests: 64
models:
  - name: chat
    source: ./models/chat.gguf
    kv:
      tokens: 16384
\`\`\`

- **Durations** have a unit: \`250ms\`, \`30s\`, \`5m\`, \`1h\`. A number without one is refused.
- **Sizes** are \`KiB\`, \`MiB\`, \`GiB\` (powers of 1024) or \`KB\`, \`MB\`, \`GB\` (powers of 1000); a plain number is bytes.
- **on | off** can be written as \`true\` and \`false\` too.
- **Lists** have numbers for keys, from 0: \`--set models.0.name=chat\`. A list in one place replaces the list of the places before it.
- **Values** of environment variables and \`--set\` are read as YAML, so that \`[a, b]\` is a list. An empty environment variable counts as not set.
- **Environment variables** that begin with \`PAGODA_\` and belong to no key are refused, also \`PAGODA_\` alone. Passed over is only what Kubernetes sets for a service whose name begins with \`pagoda\`: \`PAGODA_SERVICE_HOST\`, \`PAGODA_PORT_8000_TCP\`, \`PAGODA_PORT=tcp://...\` and their like.
- **Paths** are relative to the folder that Pagoda is started in.
- An unknown key, a value that is not allowed or an impossible combination ends Pagoda with exit code 2 and a message for each such key.

\`pagoda config print\` shows what all places together come to, \`pagoda config check FILE\` checks a file.
`;

/** The whole page: how keys are set, then a table for each section. */
export function configReference(): string {
  const sections = Object.entries(sectionMeanings).map(([section, meaning]) => {
    const keys = allKeys().filter((key) => key.path[0] === section && !isOverride(key));
    return `## ${section}\n\n${meaning}\n\n| key | values | default | meaning |\n|---|---|---|---|\n${keys.map(row).join("\n")}\n`;
  });
  return [introduction, ...sections].join("\n");
}

/** A key of a model that also is one of a section: the section's table has it already. */
function isOverride(key: Key): boolean {
  return key.path[0] === "models" && key.path.length > 3;
}

function row(key: Key): string {
  const initial = key.initialText ?? String(key.initial);
  const cells = [`\`${key.path.join(".")}\``, key.allowed, Array.isArray(key.initial) ? "none" : initial, `${key.meaning} \`${variableName(key.path)}\``];
  return `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
}
