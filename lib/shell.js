// A shell whose directory, variables and functions last from command to command: openShell(). Loaded by the first one.
//
// Each command is one of exec(), so it has an exit code, a limit, an end and an output of its own on every provider. What lasts is
// kept between them in a file of the sandbox, which the command reads first and replaces last. So a command that was ended has
// changed nothing of it.
//
// Invariant: one command of a shell runs at a time; none runs without the state, or in another directory than the one before has left.
import { SandboxError, atSite, captureSite } from "./errors.js";
import { asyncDispose, checkNames, checkString, detached, invalid } from "./options.js";
import { Turns } from "./turns.js";

const { randomBytes } = process.getBuiltinModule("node:crypto");

/** @import { ExecResult, SandboxShellCommandOptions } from "../types/index.js" */

const COMMAND_OPTIONS = Object.freeze([
  "stdin", "timeoutSeconds", "maxOutputBytes", "truncate", "mergeStreams", "background", "onStdout", "onStderr", "signal",
]);

const LETTERS = [..."abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"];
/** The names of all variables, whatever IFS is. */
const NAMES = LETTERS.map((letter) => `"\${!${letter}@}"`).join(" ");
/** What bash sets by itself, what belongs to one command, and what is ours. */
const NOT_KEPT = "BASH*|EUID|UID|PPID|SHELLOPTS|GROUPS|DIRSTACK|FUNCNAME|RANDOM|SRANDOM|SECONDS|EPOCH*|LINENO|PIPESTATUS|HISTCMD|COMP_*|OPTIND|_|PWD|SHLVL|CLOUDSANDBOX_*|__cs_*";

const GONE = "cloudsandbox: the state of this shell is gone, and the command was not run; open another shell";

/**
 * Read by each command as `. FILE.shell COMMAND`: takes the state, leaves the command in __cs_t and what ends it in __cs_x, which keeps the
 * state. It is also what comes of an exit, but not of a signal. With a second word it makes the first state. Whatever functions the user has,
 * builtins are meant.
 */
const PROGRAM = `__cs_t=$1 __cs_new=\${2-}
__cs_f=\${BASH_SOURCE[0]%.shell}.state
builtin set --
__cs_s='
{
  builtin set +euvfnC
  builtin set +o posix
  __cs_u=$(builtin umask -p)
  builtin umask 077
} 2>/dev/null
{
  builtin shopt -p
  for __cs_n in ${NAMES}; do
    case $__cs_n in ${NOT_KEPT}) ;; *) builtin declare -p "$__cs_n" ;; esac
  done
  builtin declare -f
  builtin declare -Fx
  builtin alias -p
  builtin printf "%s\\n" "$__cs_u"
  builtin printf "__cs_o=%q\\n__cs_d=%q\\n__cs_p=%q\\n" "$__cs_o" "$PWD" "\${OLDPWD-}"
  builtin printf "__cs_whole=1\\n"
} >|"$__cs_f.new" 2>/dev/null
(PATH=/usr/local/bin:/usr/bin:/bin && builtin exec -c mv -f "$__cs_f.new" "$__cs_f") 2>/dev/null ||
  builtin echo "cloudsandbox: the state of this shell could not be kept; is the disk full?" >&2
[ -e "\${__cs_f%.state}.shell" ] || PATH=/usr/local/bin:/usr/bin:/bin builtin command rm -f "$__cs_f"
'
if [ ! "$__cs_new" ]; then
  for __cs_n in ${NAMES}; do
    case $__cs_n in ${NOT_KEPT}) ;; *) builtin unset -v "$__cs_n" 2>/dev/null ;; esac
  done
  __cs_whole=
  [ ! -r "$__cs_f" ] || . "$__cs_f" 2>/dev/null
  if [ ! "$__cs_whole" ]; then
    builtin echo "${GONE}" >&2
    builtin exit 125
  fi
  if ! builtin cd -- "$__cs_d" 2>/dev/null; then
    builtin echo "cloudsandbox: the directory $__cs_d is gone, and the command was not run; the next one runs in $PWD" >&2
    __cs_t='builtin exit 125'
  fi
  OLDPWD=$__cs_p
  __cs_o=" -o \${__cs_o//:/ -o }"
  builtin set +B
fi
__cs_x='{ __cs_e=$? __cs_o=$SHELLOPTS; builtin set +x; [[ $(builtin trap -p EXIT) != *__cs_e=* ]] || builtin trap - EXIT; } 2>/dev/null; builtin eval "$__cs_s"; builtin exit $__cs_e'
builtin trap "$__cs_x" EXIT
for __cs_n in HUP INT TERM; do
  builtin trap "builtin trap - EXIT $__cs_n; builtin kill -$__cs_n $$" $__cs_n
done
if [ ! "$__cs_new" ]; then { builtin eval "builtin set $__cs_o"; } 2>/dev/null; fi
`;

/** @param {string} text */
function quoted(text) {
  return `'${text.replaceAll("'", String.raw`'\''`)}'`;
}

/**
 * @typedef {object} Place a sandbox as a shell uses it
 * @property {(spec: Record<string, any>) => Promise<ExecResult<any>>} exec
 * @property {() => string | null} id of the sandbox that runs now
 * @property {() => boolean} isClosed
 * @property {string} providerId
 * @property {boolean} isLocal
 * @property {boolean} choosesShell the sandbox was given a shell of its own
 * @property {Set<string[]>} files of open shells, which the sandbox's close removes where nothing else does
 */

/**
 * @param {Place} place
 * @param {Record<string, any>} options names checked
 * @param {{ stack?: string }} site
 */
export async function openShell(place, options, site) {
  const name = `.cloudsandbox-${randomBytes(16).toString("hex")}`;
  // On this machine it goes with a workspace that was made for the sandbox; elsewhere with the sandbox.
  const folders = place.isLocal ? '"$HOME"' : '/tmp /var/tmp /dev/shm "$HOME" "$PWD"';
  const command = `[ "$BASH_VERSION" ] || exit 126
for __cs_d in ${folders}; do [ ! -d "$__cs_d" ] || [ ! -w "$__cs_d" ] || break; done
__cs_d=$__cs_d/${name}
(umask 077 && printf %s ${quoted(PROGRAM)} >"$__cs_d.shell") || exit 125
printf '%s\\n' "$__cs_d"
. "$__cs_d.shell" : new && builtin eval "$__cs_x"`;
  const result = await place.exec({ command, ...(place.choosesShell && { shell: "bash" }), ...options });
  options.signal?.throwIfAborted();
  const file = result.stdout.trimEnd();
  if (result.exitCode === 0 && file.endsWith(name)) return new Shell(place, file);
  const isMissing = result.exitCode === 126;
  const message = isMissing
    ? "openShell: the sandbox has no bash; run commands one by one, with shell()"
    : `openShell: the state of a shell cannot be kept in the sandbox: ${result.stderr.trim() || `exit code ${result.exitCode}`}`;
  const code = isMissing ? "ERR_SANDBOX_UNSUPPORTED" : "ERR_SANDBOX_PROVIDER";
  throw atSite(new SandboxError(message, { code, provider: place.providerId, retryable: false, mayHaveRun: false }), site);
}

/** @implements {AsyncDisposable} */
class Shell {
  #place;
  #file;
  /** The first one goes first: without it no command writes another. */
  #files;
  #sandboxId;
  #turns = new Turns();
  #isClosed = false;

  /** @param {Place} place @param {string} file path of its files without their ends */
  constructor(place, file) {
    this.#place = place;
    this.#file = file;
    this.#files = [".shell", ".state", ".state.new"].map((end) => file + end);
    this.#sandboxId = place.id();
    place.files.add(this.#files);
  }

  /**
   * Runs a command line in the state that the one before has left; after it, when it is still running.
   *
   * @param {string} command
   * @param {SandboxShellCommandOptions} [options]
   * @returns {Promise<ExecResult<any>>}
   */
  async run(command, options) {
    if (!isShell(this)) throw detached("run", "shell");
    const site = captureSite(Shell.prototype.run);
    const given = checkNames(options, COMMAND_OPTIONS, "run");
    checkString(command, "command");
    if (command.includes("\0")) throw invalid("the command must not have U+0000 in it; pass such bytes through stdin or a file");
    return this.#turns.next(() => this.#run(command, given, site));
  }

  /**
   * Ends it, after the command that is running, and removes its state. What commands have left in the background lives on.
   *
   * @returns {Promise<void>}
   */
  async close() {
    if (!isShell(this)) throw detached("close", "shell");
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#turns.next(async () => {
      if (this.#place.id() === this.#sandboxId) await this.#remove();
      this.#place.files.delete(this.#files);
    });
  }

  async #remove() {
    // With the sandbox all of it is gone.
    await this.#place.exec({ argv: ["rm", "-f", ...this.#files] }).catch((error) => {
      if (error?.code !== "ERR_SANDBOX_CLOSED" && error?.code !== "ERR_SANDBOX_LOST") throw error;
    });
  }

  [asyncDispose]() {
    return this.close();
  }

  /** @param {string} command @param {Record<string, any>} options @param {{ stack?: string }} site */
  async #run(command, options, site) {
    if (this.#isClosed) throw this.#over("ERR_SANDBOX_CLOSED", "the shell is closed; open another one", site);
    if (this.#place.isClosed()) throw this.#over("ERR_SANDBOX_CLOSED", "the sandbox of this shell was closed", site);
    if (this.#place.id() !== this.#sandboxId) {
      throw this.#over("ERR_SANDBOX_LOST", "the sandbox of this shell is gone, and its state with it; open another shell", site);
    }
    const program = quoted(`${this.#file}.shell`);
    const run = `. ${program} ${quoted(command)} && { builtin eval -- "$__cs_t"; builtin eval "$__cs_x"; }`;
    return this.#place.exec({ command: `if [ -r ${program} ]; then ${run}; else echo "${GONE}" >&2; exit 125; fi`, shell: "bash", ...options });
  }

  /** @param {"ERR_SANDBOX_CLOSED" | "ERR_SANDBOX_LOST"} code @param {string} message @param {{ stack?: string }} site */
  #over(code, message, site) {
    return atSite(new SandboxError(message, { code, provider: this.#place.providerId, retryable: false, mayHaveRun: false }), site);
  }

  /** @param {unknown} value */
  static is(value) {
    return typeof value === "object" && value !== null && #file in value;
  }
}

const isShell = Shell.is;
