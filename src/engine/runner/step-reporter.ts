/** Makes one message of each step: all sequences' news and the engine's figures. */
import type { Scheduler } from "../../scheduler/scheduler.js";
import type { StepPlan } from "../../scheduler/step-plan.js";
import type { StepMessage } from "../protocol.js";
import type { RequestTable } from "./request-table.js";
import type { StepReport } from "./step-loop.js";

/** Asking the system for the resident size costs more than the rest of a report. */
const residentEveryMs = 1_000;

export function createStepReporter(scheduler: Scheduler, requests: RequestTable, send: (message: StepMessage) => void): (step: StepReport) => void {
  let steps = 0;
  let residentBytes = 0;
  let measuredAtMs = Number.NEGATIVE_INFINITY;

  return ({ plan, events, stepMs }) => {
    steps += 1;
    const nowMs = performance.now();
    if (nowMs - measuredAtMs >= residentEveryMs) {
      residentBytes = process.memoryUsage.rss();
      measuredAtMs = nowMs;
    }
    send({ type: "step", events: requests.translate(events), stats: { ...scheduler.stats(), steps, stepMs, residentBytes, ...countTokens(plan) } });
  };
}

/** A row of one token whose logits are wanted counts as decode, all other tokens as prefill. */
export function countTokens({ rows }: StepPlan): { readonly decodeRows: number; readonly prefillTokens: number } {
  const decodeRows = rows.filter((row) => row.tokens.length === 1 && row.logits === "last").length;
  const tokens = rows.reduce((sum, row) => sum + row.tokens.length, 0);
  return { decodeRows, prefillTokens: tokens - decodeRows };
}
