/** The command line of `npm run bench:engine`. */
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { bundledLibraries } from "../../src/engine/llama/libraries.js";
import { writeRandomModel } from "../make-model/random-model.js";
import { presets } from "../make-model/shapes.js";
import { readVocabulary } from "../make-model/vocabularies.js";
import type { EngineJob, OwnRound, Throughput } from "./engine-job.js";
import { defaultModelPath, type EngineBenchOptions, engineBenchUsage, parseEngineBenchOptions } from "./engine-options.js";
import { breakdownTable, memoryTable, type Side, throughputTable } from "./engine-report.js";
import { describeMachine } from "./machine.js";
import { measureMemory } from "./memory.js";
import { builtPeer, describePeerBuild, type Peer, runPeer, sameLibrariesPeer } from "./peer.js";

const memoryRequests = 32;

interface PeerRounds extends Side {
  readonly peer: Peer;
  readonly rounds: Throughput[][];
}

async function measure({ job, rounds, withPeer, withMemory, jsonPath }: EngineBenchOptions): Promise<void> {
  if (!existsSync(job.modelPath) && job.modelPath === defaultModelPath) makeDefaultModel();
  console.log(describeMachine());
  console.log(describeJob(job));
  const peers: PeerRounds[] = (withPeer ? peersFor(job) : []).map((peer) => ({ name: peer.name, peer, rounds: [] }));
  if (withPeer) console.log(`peer: llama-batched-bench of the same release, ${describePeerBuild()}`);
  const own: OwnRound[] = [];
  for (let round = 0; round < rounds; round++) {
    // Who begins changes from round to round: what warms up or cools down then favours nobody.
    const turns = [async () => own.push(await runOwn(job)), ...peers.map((side) => async () => side.rounds.push(runPeer(side.peer, job)))];
    for (let turn = 0; turn < turns.length; turn++) await turns[(round + turn) % turns.length]?.();
    process.stderr.write(`round ${round + 1} of ${rounds} done\n`);
  }
  const ownSide: Side = { name: "Pagoda", rounds: own.map((round) => round.throughputs) };
  console.log(`\n${throughputTable(job, ownSide, peers)}\n\nDecode steps of Pagoda's engine:\n${breakdownTable(job, own)}`);
  const memory = withMemory ? await measureMemory(job, memoryRequests) : undefined;
  if (memory !== undefined && own[0] !== undefined) console.log(`\n${memoryTable(memory, own[0])}`);
  if (jsonPath !== undefined) writeJson(jsonPath, { machine: describeMachine(), job, own, peers: peers.map(({ name, rounds }) => ({ name, rounds })), memory });
}

/** A fresh process for each round, as the peer has one. It also takes the messages that a gateway would take. */
async function runOwn(job: EngineJob): Promise<OwnRound> {
  const child = fork(fileURLToPath(new URL("engine-round.ts", import.meta.url)), [], { execArgv: ["--import", "tsx"] });
  let result: OwnRound | undefined;
  child.on("message", (message: { type: string; result?: OwnRound }) => {
    if (message.type === "result") result = message.result;
  });
  child.send(job);
  const [code, signal] = await once(child, "exit");
  if (result === undefined) throw new Error(`The engine's process ended without a result (${code ?? signal}).`);
  return result;
}

function peersFor(job: EngineJob): Peer[] {
  const built = builtPeer();
  const same = job.libraries === "bundled" ? sameLibrariesPeer(bundledLibraries().core) : undefined;
  return same === undefined ? [built] : [built, same];
}

function makeDefaultModel(): void {
  const shape = presets["135m"];
  if (shape === undefined) throw new Error("The 135m shape is gone.");
  console.log(`making ${defaultModelPath}`);
  writeRandomModel(defaultModelPath, { name: "135m-qwen2-q8_0-1", shape, vocabulary: readVocabulary("qwen2"), type: "q8_0", seed: 1, tieEmbeddings: true });
}

function describeJob(job: EngineJob): string {
  const { threads, batchTokens, kvLayout, flashAttention, promptTokens, outputTokens, contextTokens } = job;
  const attention = `flash attention ${flashAttention ? "on" : "off"}`;
  return `${job.modelPath}\nthreads ${threads}, batch ${batchTokens}, KV f16 in the ${kvLayout} layout with ${contextTokens} tokens a sequence, ${attention}, prompt ${promptTokens}, output ${outputTokens}`;
}

function writeJson(path: string, figures: unknown): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, `${JSON.stringify(figures, undefined, 2)}\n`);
}

/** Runs the command line. Returns the exit code. */
async function main(parameters: readonly string[]): Promise<number> {
  let options: EngineBenchOptions | undefined;
  try {
    options = parseEngineBenchOptions(parameters);
  } catch (error) {
    console.error(`bench:engine: ${(error as Error).message}\nTry --help.`);
    return 2;
  }
  if (options === undefined) {
    console.log(engineBenchUsage);
    return 0;
  }
  try {
    await measure(options);
    return 0;
  } catch (error) {
    console.error(`bench:engine: ${(error as Error).message}`);
    return 1;
  }
}

process.exitCode = await main(process.argv.slice(2));
