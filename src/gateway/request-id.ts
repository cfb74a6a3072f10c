/** Ids of requests: the client's own when it is fit for a header and a log line, else a new one. */
import { randomBytes } from "node:crypto";

const saneId = /^[A-Za-z0-9][A-Za-z0-9_.:/+=@-]{0,127}$/;

/** The id of a request whose `x-request-id` header is `fromClient`. */
export function requestIdOf(fromClient: string | readonly string[] | undefined): string {
  return typeof fromClient === "string" && saneId.test(fromClient) ? fromClient : newId("req_");
}

/** A new random id with this prefix, as OpenAI's ids look: `chatcmpl-` and 24 characters. */
export function newId(prefix: string): string {
  return prefix + randomBytes(12).toString("hex");
}
