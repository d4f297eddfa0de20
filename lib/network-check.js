// Whether the network of a sandbox is off, looked at from inside: one command, with whatever its image has.
//
// Loaded by the first sandbox whose manifest turns its network off.
//
// Invariant: "isolated" is said only when every attempt was made and none came through; what could not be tried, or gave no
// answer that can be read, is "unknown", which is as bad as "reachable".
import { SandboxError, atSite, wordsOf } from "./errors.js";
import { hostKind } from "./manifest.js";

const { BlockList } = process.getBuiltinModule("node:net");

/** @import { NativeResult, NativeSpec } from "./native.js" */
/** @import { SandboxManifestNetwork, SandboxNetworkAttempt, SandboxNetworkIsolation } from "../types/index.js" */

/** What is tried. An object, so that a test can have an outside of its own, which is on this machine. */
export const OUTSIDE = {
  /** @type {[string, number][]} */
  tcp4: [["1.1.1.1", 80], ["8.8.8.8", 53]],
  /** @type {[string, number][]} */
  tcp6: [["2606:4700:4700::1111", 80], ["2001:4860:4860::8888", 53]],
  /** Where clouds hand out credentials to whoever asks from inside. @type {[string, number][]} */
  metadata: [["169.254.169.254", 80]],
  name: "example.com",
  /** Of an allowed host. */
  port: 443,
};

const LIMIT_MS = 25_000;
const MAX_OUTPUT_BYTES = 65536;

/**
 * The arguments are attempts, three words each: kind, host, port. Each attempt says one line: its three words, the result, and
 * the program that has found it. All are made at once, since what is blocked may give no answer for seconds.
 *
 * A function `by_*` returns 0 for reachable, 1 for blocked, and anything else when it cannot say: then the next one is asked.
 */
export const PROGRAM = String.raw`
unset http_proxy https_proxy HTTP_PROXY HTTPS_PROXY all_proxy ALL_PROXY
LC_ALL=C RES_OPTIONS='timeout:2 attempts:1'
export LC_ALL RES_OPTIONS

has() {
  command -v "$1" >/dev/null 2>&1
}

# What the programs below exit with, so that one that cannot even start says nothing.
said() {
  case $1 in
  10) return 0 ;;
  11) return 1 ;;
  *) return 2 ;;
  esac
}

by_bash() {
  has bash || return 2
  # Its connect has no limit of its own.
  words=$(bash -c '
    { exec 3<>"/dev/tcp/$1/$2"; } 2>&1 &
    pid=$!
    { sleep 3; kill "$pid"; } >/dev/null 2>&1 &
    watch=$!
    wait "$pid"
    code=$?
    kill "$watch" 2>/dev/null
    exit "$code"' bash "$1" "$2" </dev/null 2>&1)
  code=$?
  [ "$code" -ne 0 ] || return 0
  case $words in
  # It was built without that.
  *'No such file or directory'* | *'not found'* | *'invalid service'*) return 2 ;;
  esac
  case $code in
  1 | 143) return 1 ;;
  *) return 2 ;;
  esac
}

by_python3() {
  has python3 || return 2
  python3 -I -c '
import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 3)
except OSError:
    sys.exit(11)
sys.exit(10)' "$1" "$2" </dev/null >/dev/null 2>&1
  said $?
}

by_perl() {
  has perl || return 2
  perl -e '
require IO::Socket::IP;
exit(IO::Socket::IP->new(PeerHost => $ARGV[0], PeerPort => $ARGV[1], Timeout => 3) ? 10 : 11)' "$1" "$2" </dev/null >/dev/null 2>&1
  said $?
}

by_node() {
  has node || return 2
  node -e '
const socket = require("net").connect({ host: process.argv[1], port: Number(process.argv[2]) });
socket.setTimeout(3000, () => process.exit(11));
socket.on("connect", () => process.exit(10));
socket.on("error", () => process.exit(11));' "$1" "$2" </dev/null >/dev/null 2>&1
  said $?
}

by_nc() {
  has nc || return 2
  words=$(nc -z -w 3 "$1" "$2" </dev/null 2>&1) && return 0
  case $words in
  *sage:* | *option*)
    words=$(nc -w 3 "$1" "$2" </dev/null 2>&1 >/dev/null) && return 0
    ;;
  esac
  case $words in
  # It does not know such an option, or such an address.
  *sage:* | *option* | *'bad address'* | *nvalid* | *parse* | *'not found'* | *lookup* | *getaddrinfo* | *'ddress family'*) return 2 ;;
  esac
  return 1
}

by_curl() {
  has curl || return 2
  seconds=$(curl -q -s -o /dev/null --noproxy '*' --connect-timeout 3 --max-time 4 -w '%{time_connect}' "$(url "$1" "$2")" </dev/null 2>/dev/null)
  case $seconds in
  *[1-9]*) return 0 ;;
  0*) return 1 ;;
  *) return 2 ;;
  esac
}

by_wget() {
  has wget || return 2
  case $(wget --version 2>/dev/null) in
  *GNU*) set -- "$1" "$2" -t1 ;;
  *) set -- "$1" "$2" -q ;;
  esac
  words=$(wget "$3" -O /dev/null -T 3 "$(url "$1" "$2")" </dev/null 2>&1) && return 0
  case $words in
  *'connected.'* | *HTTP/* | *'server returned'* | *'error getting response'*) return 0 ;;
  *"can't connect"* | *'failed: '* | *refused* | *unreachable*) return 1 ;;
  *) return 2 ;;
  esac
}

url() {
  case $1 in
  *:*) printf 'http://[%s]:%s/' "$1" "$2" ;;
  *) printf 'http://%s:%s/' "$1" "$2" ;;
  esac
}

# Without an interface there is nothing to try. The others are the kernel's, in every new namespace, and lead nowhere.
by_interfaces() {
  [ -r /proc/net/dev ] || return 2
  while read -r name rest; do
    case $name:$rest in
    'Inter-|'* | face* | lo:* | tunl0:* | gre0:* | gretap0:* | erspan0:* | sit0:* | ip_vti0:* | ip6_vti0:* | ip6tnl0:* | ip6gre0:*) ;;
    *) return 2 ;;
    esac
  done </proc/net/dev
  return 1
}

find_interfaces() {
  by_interfaces
}

find_getent() {
  has getent || return 2
  getent hosts "$1" </dev/null >/dev/null 2>&1
  case $? in
  0) return 0 ;;
  2) return 1 ;;
  *) return 2 ;;
  esac
}

find_python3() {
  has python3 || return 2
  python3 -I -c '
import socket, sys
try:
    socket.getaddrinfo(sys.argv[1], 80)
except (OSError, UnicodeError):
    sys.exit(11)
sys.exit(10)' "$1" </dev/null >/dev/null 2>&1
  said $?
}

find_perl() {
  has perl || return 2
  perl -e 'exit(defined(gethostbyname($ARGV[0])) ? 10 : 11)' "$1" </dev/null >/dev/null 2>&1
  said $?
}

find_node() {
  has node || return 2
  node -e 'require("dns").lookup(process.argv[1], (error) => process.exit(error ? 11 : 10));' "$1" </dev/null >/dev/null 2>&1
  said $?
}

find_nslookup() {
  has nslookup || return 2
  words=$(nslookup "$1" </dev/null 2>&1)
  code=$?
  case $words in
  *'no servers could be reached'* | *"can't resolve"* | *'timed out'* | *refused* | *unreachable*) return 1 ;;
  # It was told that there is no such name: somebody was asked.
  *NXDOMAIN* | *"can't find"*) return 0 ;;
  esac
  [ "$code" -eq 0 ] || return 2
}

find_curl() {
  has curl || return 2
  curl -q -s -o /dev/null --noproxy '*' --connect-timeout 3 --max-time 4 "http://$1/" </dev/null >/dev/null 2>&1
  case $? in
  6) return 1 ;;
  0 | 7 | 28 | 52 | 56) return 0 ;;
  *) return 2 ;;
  esac
}

attempt() {
  by=by tools='bash python3 perl nc curl node wget interfaces'
  case $1 in
  dns) by=find tools='getent python3 perl nslookup curl node interfaces' ;;
  esac
  for tool in $tools; do
    "$by"_"$tool" "$2" "$3"
    case $? in
    0) result=reachable ;;
    1) result=blocked ;;
    *) continue ;;
    esac
    printf '%s %s %s %s %s\n' "$1" "$2" "$3" "$result" "$tool"
    return
  done
  printf '%s %s %s unknown none\n' "$1" "$2" "$3"
}

while [ $# -ge 3 ]; do
  attempt "$1" "$2" "$3" &
  shift 3
done
wait
exit 0
`.replace(/^\s*#.*\n/gm, "").trimStart();

/** @typedef {Omit<SandboxNetworkAttempt, "result" | "by">} Attempt */

/**
 * Looks at the network of a sandbox.
 *
 * @param {SandboxManifestNetwork} network that is to be off
 * @param {(spec: NativeSpec) => Promise<NativeResult>} exec runs a command in it
 * @returns {Promise<SandboxNetworkIsolation>}
 */
export async function checkNetwork(network, exec) {
  const attempts = attemptsOf(network);
  const words = attempts.flatMap(({ kind, host, port }) => [kind, host, String(port)]);
  const { output } = await exec({
    kind: "argv",
    argv: ["/bin/sh", "-c", PROGRAM, "sh", ...words],
    mergeStreams: true,
    maxOutputBytes: MAX_OUTPUT_BYTES,
    timeoutMs: LIMIT_MS,
    endBackground: true,
  });
  const evidence = attempts.map((attempt) => found(attempt, output?.bytes.toString() ?? ""));
  return Object.freeze({ verdict: verdictOf(evidence), evidence: Object.freeze(evidence) });
}

/**
 * What must not come through, and one host that may. What the list allows is not tried as forbidden; with names in it, names
 * have to be found.
 *
 * @param {SandboxManifestNetwork} network
 * @returns {Attempt[]}
 */
function attemptsOf({ allowedHosts = [] }) {
  const allowed = new BlockList();
  for (const host of allowedHosts) {
    const kind = hostKind(host);
    if (kind === "name") continue;
    const [address, prefix] = host.split("/");
    allowed.addSubnet(address, Number(prefix ?? (kind === "ipv4" ? 32 : 128)), kind);
  }
  const { tcp4, tcp6, metadata, name, port } = OUTSIDE;
  const forbidden = Object.entries({ tcp4, tcp6, metadata }).flatMap(([kind, targets]) =>
    targets
      .filter(([host]) => !allowed.check(host, host.includes(":") ? "ipv6" : "ipv4"))
      .map(([host, at]) => ({ kind: /** @type {"tcp4" | "tcp6" | "metadata"} */ (kind), host, port: at })));
  const hasNames = allowedHosts.some((host) => hostKind(host) === "name");
  const one = allowedHosts.find((host) => !host.includes("/"))?.replace(/^\*\./, "");
  return [
    ...forbidden,
    ...(hasNames ? [] : [{ kind: /** @type {const} */ ("dns"), host: name, port: 0 }]),
    ...(one === undefined ? [] : [{ kind: /** @type {const} */ ("allowed"), host: one, port }]),
  ];
}

/**
 * What the program has said of an attempt; "unknown" when it has said nothing, or more than one thing.
 *
 * @param {Attempt} attempt
 * @param {string} output
 * @returns {SandboxNetworkAttempt}
 */
function found({ kind, host, port }, output) {
  const start = `${kind} ${host} ${port} `;
  const said = output.split("\n").filter((line) => line.startsWith(start));
  const [, result, by] = (said.length === 1 && /^(reachable|blocked) (\w+)$/.exec(said[0].slice(start.length))) || [];
  return Object.freeze({
    kind, host, port, result: /** @type {"reachable" | "blocked" | undefined} */ (result) ?? "unknown", ...(by !== undefined && { by }),
  });
}

/**
 * An allowed host that does not answer may be down: it says nothing about the others.
 *
 * @param {SandboxNetworkAttempt[]} evidence
 */
function verdictOf(evidence) {
  const forbidden = evidence.filter(({ kind }) => kind !== "allowed");
  if (forbidden.some(({ result }) => result === "reachable")) return "reachable";
  const tried = forbidden.some(({ kind }) => kind === "tcp4") && forbidden.every(({ result }) => result === "blocked");
  return tried ? "isolated" : "unknown";
}

/**
 * Why a sandbox is not to be used, in words.
 *
 * @param {SandboxNetworkIsolation} isolation
 */
function refusalOf({ verdict, evidence }) {
  const shown = evidence
    .filter(({ kind, result }) => kind !== "allowed" && result === (verdict === "reachable" ? "reachable" : "unknown"))
    .map(({ kind, host, port, by }) => `${kind} ${host}${port ? ` port ${port}` : ""}${by ? ` (by ${by})` : ""}`)
    .join(", ");
  return verdict === "reachable"
    ? `the network of the sandbox is to be off, and it is not: from inside, ${shown} could be reached`
    : `the network of the sandbox is to be off, and nothing in it could find out whether it is: ${shown || "no address is left that is not allowed"}`;
}

/**
 * @typedef {object} Guarded a sandbox object, as far as it is needed here
 * @property {() => string | null} id of the sandbox that calls would run in now
 * @property {() => Promise<void>} start
 * @property {(spec: NativeSpec) => Promise<NativeResult>} exec
 * @property {() => Promise<void>} destroy
 */

/** Lets calls of a sandbox object pass once the network of the sandbox that they would run in is known to be off. */
export class NetworkGuard {
  /** Of the sandbox that was looked at last. @type {SandboxNetworkIsolation | undefined} */
  isolation;
  #network;
  #provider;
  #sandbox;
  /** @type {string | undefined} */
  #passed;
  /** @type {Promise<void> | undefined} */
  #looking;
  /** Why nothing is to run any more. @type {string | undefined} */
  #refusal;

  /** @param {SandboxManifestNetwork} network @param {string} provider @param {Guarded} sandbox */
  constructor(network, provider, sandbox) {
    this.#network = network;
    this.#provider = provider;
    this.#sandbox = sandbox;
  }

  /** @param {string | null} id */
  hasPassed(id) {
    return id !== null && id === this.#passed;
  }

  /** Starts a sandbox and looks at it; who asks meanwhile waits for the same look. */
  look() {
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** One whose network is not known to be off is deleted, and its object is of no use any more. */
  async #look() {
    await this.#sandbox.start();
    const id = this.#sandbox.id();
    const isolation = await checkNetwork(this.#network, this.#sandbox.exec);
    this.isolation = isolation;
    if (isolation.verdict === "isolated") {
      this.#passed = id ?? undefined;
      return;
    }
    this.#refusal = `${refusalOf(isolation)}; no command was run, and the sandbox is being deleted`;
    try {
      await this.#sandbox.destroy();
      this.#refusal = `${refusalOf(isolation)}; no command was run, and the sandbox was deleted`;
    } catch (error) {
      this.#refusal = `${refusalOf(isolation)}; no command was run, but the sandbox could not be deleted: call close() to try again (${wordsOf(error)})`;
    }
    throw this.refused({});
  }

  /** The error of every call once that was found. @param {{ stack?: string }} site */
  refused(site) {
    if (this.#refusal === undefined) return undefined;
    const advice = "use another provider, account or image; or pass verifyNetwork: false, and nobody looks at it";
    const code = /** @type {const} */ ("ERR_SANDBOX_ISOLATION_UNAVAILABLE");
    return atSite(new SandboxError(`${this.#refusal}. To go on, ${advice}`, { code, provider: this.#provider }), site);
  }
}
