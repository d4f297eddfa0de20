// Who gives temporary credentials to a program on AWS: a container's agent, and the metadata service of an instance.
// @ts-check
import { randomBytes } from "node:crypto";

import { Engine } from "../engine.js";

/** @typedef {import("../exchange.js").Exchange} Exchange */

const ROLE = "role-of-this/instance";
const ROLES = "/latest/meta-data/iam/security-credentials/";

/**
 * @param {object} [options]
 * @param {number} [options.lifeMs] how long its credentials are valid
 * @param {string} [options.pass] what a container has to show
 */
export async function startMetadata({ lifeMs = 3600_000, pass } = {}) {
  const engine = new Engine();
  /** Handed out so far, the newest at the end. @type {{ id: string, secret: string, token: string }[]} */
  const keys = [];
  const tokens = new Set();
  const settings = { lifeMs };

  function fresh() {
    const pair = { id: `ASIA${keys.length}KEY`, secret: `secret/${randomBytes(12).toString("hex")}`, token: `token/${randomBytes(12).toString("hex")}` };
    keys.push(pair);
    const Expiration = new Date(Date.now() + settings.lifeMs).toISOString().replace(/\.\d+Z$/, "Z");
    return { Code: "Success", AccessKeyId: pair.id, SecretAccessKey: pair.secret, Token: pair.token, Expiration };
  }

  /** @param {Exchange} exchange */
  async function handle(exchange) {
    if (exchange.path === "/credentials") {
      if (pass !== undefined && exchange.header("authorization") !== pass) return exchange.text(401, "who?");
      return exchange.json(200, fresh());
    }
    if (exchange.method === "PUT" && exchange.path === "/latest/api/token") {
      if (!(Number(exchange.header("x-aws-ec2-metadata-token-ttl-seconds")) > 0)) return exchange.text(400, "no time");
      const token = randomBytes(20).toString("hex");
      tokens.add(token);
      return exchange.text(200, token);
    }
    if (!tokens.has(exchange.header("x-aws-ec2-metadata-token"))) return exchange.text(401, "no token");
    if (exchange.path === ROLES) return exchange.text(200, `${ROLE}\n`);
    return exchange.path === `${ROLES}${encodeURIComponent(ROLE)}` ? exchange.json(200, fresh()) : exchange.text(404, "not there");
  }

  const { url } = await engine.listen({ name: "metadata", handler: handle });
  return { engine, url, keys, settings, close: () => engine.close() };
}
