// What the machine's libcurl can do.
import { execFileSync } from "node:child_process";

/** Whether calls share an HTTP/2 connection: those of 8.1 and newer. */
export function sharesHttp2() {
  const [major, minor] = execFileSync("pkg-config", ["--modversion", "libcurl"], { encoding: "utf8" }).split(".").map(Number);
  return major > 8 || (major === 8 && minor >= 1);
}
