/** One stream of server-sent events to one client: framing, comment pings on silence, bounded unsent output, and the end of a reader that stalls. */
import type { ServerResponse } from "node:http";
import { type PagodaError, slowReader } from "../errors.js";

export interface SseStream {
  /** Queues text that is complete events already. Never blocks; see `hasRoom`. */
  write(events: string): void;
  /** False while more than `bufferBytes` are unsent: whoever produces should wait for `room`. */
  readonly hasRoom: boolean;
  /** Resolves when there is room again, or when the stream is over. */
  room(): Promise<void>;
  /** Sends what is queued, then ends the response. Resolves when the client has it, or the connection is gone. */
  end(): Promise<void>;
}

export interface SseStreamOptions {
  /** Unsent text at most before `hasRoom` turns false. One write may go beyond it. */
  readonly bufferBytes: number;
  readonly slowReaderTimeoutMs: number;
  readonly pingIntervalMs: number;
  readonly headers: Readonly<Record<string, string>>;
  /** The reader took nothing for too long: the connection is being destroyed. */
  readonly onSlowReader: (reason: PagodaError) => void;
}

// The next piece is handed on only when the system has taken the one before. A piece is small, so that a reader who is slow
// but reads shows progress often; and what waits here, not in the socket's own queue, is what `bufferBytes` bounds.
const pieceCharacters = 16 * 1024;

/** Sends the headers at once and starts the stream. */
export function openSseStream(response: ServerResponse, options: SseStreamOptions): SseStream {
  let unsent = "";
  let unsentBytes = 0;
  let isWriting = false;
  let isEnding = false;
  let waitingForRoom: (() => void)[] = [];
  const closed = new Promise<void>((resolve) => response.once("close", resolve));

  response.writeHead(200, {
    ...options.headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
  });
  response.flushHeaders();

  const stallTimer = setTimeout(() => {
    if (!isWriting) return;
    options.onSlowReader(slowReader({ stalledMs: options.slowReaderTimeoutMs }));
    response.destroy();
  }, options.slowReaderTimeoutMs);
  const pingTimer = setInterval(() => {
    if (!isWriting) send(":\n\n");
  }, options.pingIntervalMs);

  function send(piece: string): void {
    isWriting = true;
    stallTimer.refresh();
    pingTimer.refresh();
    response.write(piece, onTaken);
  }

  function onTaken(error: Error | null | undefined): void {
    isWriting = false;
    if (error) return; // the connection is gone: 'close' follows and ends everything
    pump();
    if (hasRoom()) releaseWaiting();
  }

  function pump(): void {
    if (isWriting || response.destroyed) return;
    if (unsent !== "") {
      const piece = unsent.length <= pieceCharacters ? unsent : unsent.slice(0, endOfPiece(unsent));
      unsent = unsent.slice(piece.length);
      unsentBytes -= Buffer.byteLength(piece);
      send(piece);
    } else if (isEnding) {
      isWriting = true; // a client that never takes the last bytes is a stalled reader too
      stallTimer.refresh();
      response.end();
    }
  }

  function hasRoom(): boolean {
    return unsentBytes <= options.bufferBytes;
  }

  function releaseWaiting(): void {
    for (const resolve of waitingForRoom) resolve();
    waitingForRoom = [];
  }

  response.once("close", () => {
    clearTimeout(stallTimer);
    clearInterval(pingTimer);
    unsent = "";
    unsentBytes = 0;
    releaseWaiting();
  });

  return {
    write(events) {
      if (isEnding || response.destroyed) return;
      unsent += events;
      unsentBytes += Buffer.byteLength(events);
      pump();
    },
    get hasRoom() {
      return hasRoom();
    },
    room() {
      return hasRoom() || response.destroyed ? Promise.resolve() : new Promise((resolve) => waitingForRoom.push(resolve));
    },
    end() {
      isEnding = true;
      clearInterval(pingTimer);
      pump();
      return closed;
    },
  };
}

/** Where to cut off a piece: not inside a surrogate pair, whose halves could not be encoded alone. */
function endOfPiece(text: string): number {
  const last = text.charCodeAt(pieceCharacters - 1);
  return last >= 0xd800 && last <= 0xdbff ? pieceCharacters + 1 : pieceCharacters;
}
