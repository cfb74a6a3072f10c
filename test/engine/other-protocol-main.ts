/** A process that speaks a later version of the engine protocol. */
import { protocolVersion } from "../../src/engine/protocol.js";

process.on("disconnect", () => process.exit(0));
process.send?.({ type: "hello", protocolVersion: protocolVersion + 1, pid: process.pid });
