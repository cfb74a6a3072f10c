/** The command line of `npm run bench:memory`: whether a server's memory grows with the number of requests that it has answered. */
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { describeMachine } from "./machine.js";
import { type OwnServer, startOwnServer } from "./own-server.js";
import { residentBytes } from "./processes.js";
import { formatTable } from "./table.js";

const usage = `Starts pagoda serve with the built-in model, sends requests, 16 at a time, and prints the resident memory of both processes as they are answered.

Usage: npm run bench:memory -- [--requests N]

Options:
  --requests N   requests in all (default 10000)
  --help         this text

Each request has another prompt and other sampling settings; a third of them are streamed.
Memory that is in use for good after the first thousand requests must not grow from then on.`;

const concurrency = 16;
const readings = 10;

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { requests: { type: "string", default: "10000" }, help: { type: "boolean", default: false } } });
  const requests = Number(values.requests);
  if (values.help || !Number.isInteger(requests) || requests < readings) {
    console.log(usage);
    return values.help ? 0 : 2;
  }
  console.log(`${describeMachine()}\n`);
  const server = await startOwnServer(["--set", "observability.logs.level=warn"]);
  try {
    const rows = [await reading(server, 0)];
    for (let part = 0; part < readings; part++) {
      await sendAll(server, Math.round((part * requests) / readings), Math.round(((part + 1) * requests) / readings));
      rows.push(await reading(server, Math.round(((part + 1) * requests) / readings)));
    }
    console.log(formatTable(["requests", "gateway MiB", "engine MiB"], rows));
    return 0;
  } finally {
    await server.stop();
  }
}

async function sendAll(server: OwnServer, from: number, to: number): Promise<void> {
  let next = from;
  const worker = async (): Promise<void> => {
    while (next < to) await server.chat(requestOf(next++));
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
}

function requestOf(index: number): object {
  const sampling = [{ temperature: 0 }, { temperature: 1, seed: index }, { temperature: 0.8, top_k: 40, top_p: 0.9, repeat_penalty: 1.1 }][index % 3];
  const messages = [{ role: "user", content: `What is ${index % 21} + ${(index * 7) % 21}? ${"Again. ".repeat(index % 13)}` }];
  return { messages, max_tokens: 8, stream: index % 3 === 1, logprobs: index % 5 === 0, ...sampling };
}

async function reading(server: OwnServer, requests: number): Promise<string[]> {
  await sleep(1_000);
  const mebibytes = (pid: number): string => (residentBytes(pid) / 2 ** 20).toFixed(1);
  return [String(requests), mebibytes(server.gatewayPid), mebibytes(server.enginePid)];
}

process.exitCode = await main();
