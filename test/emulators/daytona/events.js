// The stream of events that the vendor's SDK listens to by default: Socket.IO 4 over a WebSocket.
// @ts-check
import { randomUUID } from "node:crypto";
import { WebSocketChannel, wantsWebSocket } from "./websocket.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */
/** @typedef {import("./sandbox.js").Fleet} Fleet */
/** @typedef {import("./sandbox.js").Sandbox} Sandbox */

const PING_MS = 25_000;

export class Events {
  /** @type {Set<WebSocketChannel>} */
  #listeners = new Set();

  /**
   * @param {Fleet} fleet
   * @param {(sandbox: Sandbox) => unknown} view
   */
  constructor(fleet, view) {
    this.settings = fleet.settings;
    fleet.on("created", (sandbox) => this.#publish("sandbox.created", view(sandbox)));
    fleet.on("state", (sandbox, oldState) => {
      this.#publish("sandbox.state.updated", { sandbox: view(sandbox), oldState, newState: sandbox.state });
    });
  }

  /** @param {Exchange} exchange */
  async serve(exchange) {
    if (!wantsWebSocket(exchange) || exchange.query.get("transport") !== "websocket") {
      await exchange.json(400, { code: 0, message: "Transport unknown" });
      return;
    }
    const channel = await WebSocketChannel.accept(exchange);
    if (!channel) return;
    channel.onText = (text) => void this.#read(channel, text);
    const limits = { pingInterval: PING_MS, pingTimeout: 20_000, maxPayload: 1_000_000 };
    await channel.sendText(`0${JSON.stringify({ sid: randomUUID(), upgrades: [], ...limits })}`);
    const ping = setInterval(() => void channel.sendText("2"), PING_MS);
    ping.unref();
    await channel.closed;
    clearInterval(ping);
    this.#listeners.delete(channel);
    await exchange.end();
  }

  /**
   * @param {WebSocketChannel} channel
   * @param {string} text
   */
  async #read(channel, text) {
    if (!text.startsWith("40")) return;
    const { token } = text.length > 2 ? JSON.parse(text.slice(2)) : {};
    const { apiKeys, jwtTokens } = this.settings;
    if (![...apiKeys, ...jwtTokens].includes(token)) {
      await channel.sendText(`44${JSON.stringify({ message: "Unauthorized" })}`);
      return;
    }
    this.#listeners.add(channel);
    await channel.sendText(`40${JSON.stringify({ sid: randomUUID() })}`);
  }

  /**
   * @param {string} name
   * @param {unknown} payload
   */
  #publish(name, payload) {
    for (const channel of this.#listeners) void channel.sendText(`42${JSON.stringify([name, payload])}`);
  }
}
