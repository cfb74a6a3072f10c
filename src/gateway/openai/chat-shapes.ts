/** The bodies of chat answers: the whole one, and the chunks of a stream. */
import type { Vocabulary } from "../../tokenizer/index.js";
import type { AnswerPiece } from "../choice-answer.js";
import type { RunSummary } from "../generation-run.js";
import { choiceLogprobs } from "./token-logprobs.js";
import { timingsOf, usageOf } from "./usage.js";

/** What all bodies of one answer have in common. */
export interface ChatEnvelope {
  readonly id: string;
  readonly created: number;
  readonly model: string;
  readonly system_fingerprint: string;
  readonly service_tier?: string;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface ShapeOptions {
  readonly envelope: ChatEnvelope;
  readonly vocabulary: Vocabulary;
  readonly wantsLogprobs: boolean;
}

/** The whole answer. `pieces` holds the pieces of each choice in order. */
export function chatCompletion({ envelope, vocabulary, wantsLogprobs }: ShapeOptions, pieces: readonly (readonly AnswerPiece[])[], summary: RunSummary) {
  const { id, ...rest } = envelope;
  const choices = pieces.map((ofChoice, index) => ({
    index,
    message: { role: "assistant", content: ofChoice.map((piece) => piece.text).join(""), refusal: null },
    logprobs: wantsLogprobs
      ? choiceLogprobs(
          ofChoice.flatMap((piece) => piece.tokens),
          vocabulary,
        )
      : null,
    finish_reason: ofChoice.at(-1)?.finish ?? "length",
  }));
  return { id, object: "chat.completion", ...rest, choices, usage: usageOf(summary), timings: timingsOf(summary) };
}

/** Makes the events of one stream, each complete with its blank line. */
export interface ChatChunks {
  /** The events for one piece: the role before a choice's first piece, its text if there is any, its end unless it is the last choice. */
  piece(piece: AnswerPiece): string;
  /** The end of the last choice and of the stream; the last chunk carries the timings. */
  end(summary: RunSummary): string;
}

/** @param wantsUsage whether the stream ends with a chunk of usage; the others then say `"usage":null`. */
export function createChatChunks({ envelope, vocabulary, wantsLogprobs }: ShapeOptions, choices: number, wantsUsage: boolean): ChatChunks {
  const { id, metadata: _, ...rest } = envelope;
  const common = { id, object: "chat.completion.chunk", ...rest };
  // Everything but the delta is the same in all chunks, so it is written once.
  const head = `data: ${JSON.stringify(common).slice(0, -1)},"choices":[{"index":`;
  const tail = `}]${wantsUsage ? ',"usage":null' : ""}`;
  const begun = new Set<number>();
  let unfinished = choices;
  let lastFinish = "";

  function chunk(index: number, delta: string, logprobs: string, finish: string): string {
    return `${head}${index},"delta":${delta},"logprobs":${logprobs},"finish_reason":${finish}${tail}`;
  }

  return {
    piece({ index, text, tokens, finish }) {
      let events = "";
      if (!begun.has(index)) {
        begun.add(index);
        events += `${chunk(index, '{"role":"assistant","content":null}', "null", "null")}}\n\n`;
      }
      if (text !== "" || tokens.length > 0) {
        const logprobs = wantsLogprobs ? JSON.stringify(choiceLogprobs(tokens, vocabulary)) : "null";
        events += `${chunk(index, text === "" ? "{}" : `{"content":${JSON.stringify(text)}}`, logprobs, "null")}}\n\n`;
      }
      if (finish === undefined) return events;
      const finishChunk = chunk(index, "{}", "null", `"${finish}"`);
      unfinished -= 1;
      if (unfinished > 0) return `${events}${finishChunk}}\n\n`;
      lastFinish = finishChunk;
      return events;
    },
    end(summary) {
      const timings = JSON.stringify(timingsOf(summary));
      if (!wantsUsage) return `${lastFinish},"timings":${timings}}\n\ndata: [DONE]\n\n`;
      const usage = JSON.stringify({ ...common, choices: [], usage: usageOf(summary), timings: timingsOf(summary) });
      return `${lastFinish}}\n\ndata: ${usage}\n\ndata: [DONE]\n\n`;
    },
  };
}
