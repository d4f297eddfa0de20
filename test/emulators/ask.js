// What the emulators' own tests ask with: plain HTTP, one connection for each request.
import http from "node:http";

class Reply {
  /**
   * @param {http.IncomingMessage} response
   * @param {Buffer} body
   */
  constructor(response, body) {
    this.status = response.statusCode ?? 0;
    this.headers = response.headers;
    this.complete = response.complete;
    this.body = body;
    this.text = body.toString();
  }

  /** @returns {any} */
  get json() {
    return JSON.parse(this.text);
  }
}

/**
 * One request over its own connection.
 * @param {string} url
 * @param {{ method?: string, headers?: Record<string, string>, body?: string | Buffer | undefined }} [options]
 * @returns {Promise<Reply>}
 */
export function ask(url, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const request = http.request(url, { method, headers, agent: false }, (response) => {
      /** @type {Buffer[]} */
      const parts = [];
      response.on("data", (part) => parts.push(part));
      response.on("error", () => {});
      response.on("close", () => resolve(new Reply(response, Buffer.concat(parts))));
    });
    request.on("error", reject);
    request.end(body);
  });
}
