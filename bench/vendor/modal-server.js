// The canned replies of Modal, which is gRPC over HTTP/2: no process runs. Prints its URL and serves until its standard input
// ends. argv: the file that it writes its certificate to. Not at 127.0.0.1, for which the vendor's client leaves TLS out.
import { writeFileSync } from "node:fs";
import http2 from "node:http2";
import { makeCertificate } from "../../test/emulators/certificate.js";

const HOST = "127.0.0.2";
/** The next two bytes tell its value's length. */
const TAG = /CLOUDSANDBOX_CALL.{2}([0-9a-f]{32})/s;
const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** A field of a message that is shorter than 16 KiB. @param {number} number @param {string | Buffer} value */
function field(number, value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([Buffer.from([(number << 3) | 2, (bytes.length & 127) | 128, bytes.length >> 7]), bytes]);
}

/** @param {Buffer} [message] */
function frame(message = Buffer.alloc(0)) {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.length, 1);
  return Buffer.concat([head, message]);
}

/** @param {Record<string, unknown>} claims */
const jwt = (claims) => `${["{}", JSON.stringify(claims)].map((part) => Buffer.from(part).toString("base64url")).join(".")}.c2ln`;

/** What ours reads at the end of its program's outputs, by command. @type {Map<string, string>} */
const tags = new Map();
/** @type {Record<string, (body: string) => Buffer>} */
const calls = {
  TaskExecStart(body) {
    const tag = TAG.exec(body)?.[1];
    if (tag) tags.set(ID.exec(body)?.[0] ?? "", tag);
    return frame();
  },
  TaskExecStdioRead(body) {
    const tag = tags.get(ID.exec(body)?.[0] ?? "");
    return tag ? frame(field(1, `\x1e${tag} 0\n`)) : Buffer.alloc(0);
  },
  TaskExecWait: () => frame(Buffer.from([0x08, 0])),
};

const [file] = process.argv.slice(2);
const certificate = makeCertificate([HOST]);
writeFileSync(file, certificate.cert);
const head = { ":status": 200, "content-type": "application/grpc" };
const server = http2.createSecureServer(certificate);
server.on("stream", (stream, headers) => {
  /** @type {Buffer[]} */
  const parts = [];
  stream.on("error", () => {});
  stream.on("data", (part) => parts.push(part));
  stream.on("end", () => {
    const path = String(headers[":path"]);
    const call = calls[path.slice(path.lastIndexOf("/") + 1)];
    const body = call?.(Buffer.concat(parts).toString("latin1"));
    stream.respond(head, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": body ? "0" : "12" }));
    stream.end(body);
  });
});
server.listen(0, HOST, () => {
  const url = `https://${HOST}:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  const exp = Math.floor(Date.now() / 1000) + 86400;
  const router = Buffer.concat([field(1, jwt({ exp })), field(2, url)]);
  Object.assign(calls, {
    AuthTokenGet: () => frame(field(1, jwt({ exp }))),
    AppGetOrCreate: () => frame(field(1, "ap-bench")),
    EnvironmentGetOrCreate: () => frame(Buffer.concat([field(1, "en-bench"), field(2, field(2, field(1, "2025.06")))])),
    ImageGetOrCreate: () => frame(Buffer.concat([field(1, "im-bench"), field(2, Buffer.from([0x08, 1]))])),
    SandboxCreateV2: () =>
      frame(Buffer.concat([field(1, "sb-BENCHBENCHBENCHBENCHBENCHV"), field(3, "ta-BENCHBENCHBENCHBENCHBENCHV"), field(5, router)])),
    SandboxTerminateV2: () => frame(),
  });
  console.log(url);
});
process.stdin.on("end", () => process.exit()).resume();
