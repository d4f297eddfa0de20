// A throw-away certificate for listeners with TLS, made by the openssl program.
// @ts-check
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/**
 * A self-signed certificate that is its own authority.
 * @param {string[]} names host names (also "*.example.test") and IP addresses it is good for
 * @returns {{ key: string, cert: string }}
 */
export function makeCertificate(names) {
  const directory = mkdtempSync(path.join(os.tmpdir(), "certificate-"));
  try {
    const key = path.join(directory, "key.pem");
    const cert = path.join(directory, "cert.pem");
    const alternatives = names.map((name) => (/^[\d.]+$|:/.test(name) ? `IP:${name}` : `DNS:${name}`));
    const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"];
    const subject = ["-subj", "/CN=emulator", "-addext", `subjectAltName=${alternatives.join(",")}`];
    execFileSync("openssl", ["req", "-x509", ...kind, ...subject, "-keyout", key, "-out", cert], { stdio: "pipe" });
    return { key: readFileSync(key, "utf8"), cert: readFileSync(cert, "utf8") };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
