/**
 * Which folder may import from which (docs/architecture.md), checked by `npm run check:imports`. Type imports count.
 * src/errors.ts is everybody's; tests may reach across folders.
 */
const mayImport = {
  config: [],
  gateway: ["tokenizer", "governance", "registry", "observability", "engine/client", "config"],
  tokenizer: ["registry", "config"],
  scheduler: ["kv-cache", "config"],
  "kv-cache": ["config"],
  engine: ["scheduler", "kv-cache", "registry", "observability", "config"],
  registry: ["config"],
  observability: ["config"],
  governance: ["registry", "observability", "config"],
  cluster: ["engine/client", "config"],
};

const tests = "(\\.test\\.ts|/fixtures/[^/]+)$";
const nativePackages = "node_modules/(koffi|node-llama-cpp|@node-llama-cpp)/";

const tableRules = Object.entries(mayImport).map(([folder, allowed]) => ({
  name: `${folder}-imports`,
  comment: `src/${folder} may import from: ${allowed.length === 0 ? "no other folder" : allowed.join(", ")}.`,
  severity: "error",
  from: { path: `^src/${folder}/`, pathNot: tests },
  to: { path: "^src/", pathNot: [`^src/(${[folder, ...allowed].join("|")})/`, "^src/errors\\.ts$"] },
}));

module.exports = {
  forbidden: [
    ...tableRules,
    { name: "no-cycles", severity: "error", from: {}, to: { circular: true } },
    {
      name: "known-folders",
      comment: "Every folder of src/ has its line in the table.",
      severity: "error",
      from: { path: "^src/", pathNot: [`^src/(cli|${Object.keys(mayImport).join("|")})/`, "^src/errors\\.ts$"] },
      to: {},
    },
    { name: "errors-import-nothing", severity: "error", from: { path: "^src/errors\\.ts$" }, to: { path: ".+" } },
    { name: "nothing-imports-the-command", severity: "error", from: { path: "^src/", pathNot: ["^src/cli/", tests] }, to: { path: "^src/cli/" } },
    {
      name: "pure-policy",
      comment: "The scheduler and the KV accounting do no I/O and read no clock: tests run them in simulated time.",
      severity: "error",
      from: { path: "^src/(scheduler|kv-cache)/", pathNot: tests },
      to: { dependencyTypes: ["core", "npm"] },
    },
    {
      name: "native-code-only-in-the-engine-process",
      comment: "Native code can abort a process; it must never take the listener with it.",
      severity: "error",
      from: { path: "^src/", pathNot: ["^src/engine/(?!client/)", tests] },
      to: { path: nativePackages },
    },
    {
      name: "no-way-from-the-gateway-to-native-code",
      comment: "What the gateway's process loads must not load native code either.",
      severity: "error",
      from: { path: "^src/(cli|gateway|engine/client)/", pathNot: tests },
      to: { path: nativePackages, reachable: true },
    },
    { name: "no-tests-in-the-product", severity: "error", from: { path: "^src/", pathNot: tests }, to: { path: [tests, "^test/", "^scripts/"] } },
    { name: "no-development-dependencies", severity: "error", from: { path: "^src/", pathNot: tests }, to: { dependencyTypes: ["npm-dev", "npm-no-pkg"] } },
    { name: "resolvable", severity: "error", from: {}, to: { couldNotResolve: true } },
  ],
  options: {
    tsConfig: { fileName: "tsconfig.check.json" },
    tsPreCompilationDeps: true,
    doNotFollow: { path: "node_modules" },
    enhancedResolveOptions: { exportsFields: ["exports"], conditionNames: ["import", "node", "default", "types"] },
  },
};
