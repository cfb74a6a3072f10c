/** What other folders use of the gateway. */
export { createGateway, type Gateway, type GatewayOptions } from "./gateway.js";
export type { ServedModel } from "./served-model.js";
