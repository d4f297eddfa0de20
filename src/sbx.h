/* sbx.h - the public C interface of cloudsandbox.
 *
 * One port, `sbx_sandbox`, over many places where code can run. Everything happens on one libuv
 * loop that the caller owns and runs; every function here must be called on that loop's thread.
 *
 * Rules that hold for every function:
 *  - Arguments are borrowed for the call only. What is needed later is copied.
 *  - A function that can fail at once returns 0 or a negative code and fills `err` (may be NULL).
 *    When it fails, its callback is never called.
 *  - A callback is called exactly once, never from inside the function that started the call.
 *    What a callback receives is valid until it returns.
 *  - Messages never hold a secret. */
#ifndef SBX_H
#define SBX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- errors --------------------------------------------------------------------------------- */

/* X(name, number, public code, a repeat may succeed, default text)
 * The public code is what JavaScript sees behind "ERR_SANDBOX_". EPATH shares INVALID_ARG's public
 * code: it is the same mistake, about a path that leaves the workspace. */
#define SBX_ERROR_MAP(X)                                                                           \
  X(EINVAL, -1, "INVALID_ARG", false, "invalid argument")                                          \
  X(EPATH, -2, "INVALID_ARG", false, "the path is not allowed")                                    \
  X(EKEY, -3, "MISSING_KEY", false, "missing API key")                                             \
  X(ELIBRARY, -4, "MISSING_LIBRARY", false, "a system library is missing")                         \
  X(EBINARY, -5, "MISSING_BINARY", false, "a helper binary is missing")                            \
  X(EAUTH, -6, "AUTH", false, "the provider refused the credentials")                              \
  X(EFORBIDDEN, -7, "FORBIDDEN", false, "not permitted")                                           \
  X(ENOTFOUND, -8, "NOT_FOUND", false, "not found")                                                \
  X(ECONFLICT, -9, "CONFLICT", true, "conflict")                                                   \
  X(ERATE, -10, "RATE_LIMITED", true, "rate limited")                                              \
  X(EQUOTA, -11, "QUOTA", false, "quota exceeded")                                                 \
  X(ETIMEOUT, -12, "TIMEOUT", true, "timed out")                                                   \
  X(ELOST, -13, "LOST", false, "the sandbox is gone")                                              \
  X(ENET, -14, "NETWORK", true, "network failure")                                                 \
  X(ETLS, -15, "TLS", false, "TLS failure")                                                        \
  X(EPROTO, -16, "PROTOCOL", false, "unexpected answer")                                           \
  X(ETOOBIG, -17, "TOO_LARGE", false, "too large")                                                 \
  X(EPROVIDER, -18, "PROVIDER", true, "the provider failed")                                       \
  X(EUNSUPPORTED, -19, "UNSUPPORTED", false, "not supported")                                      \
  X(ENOTREADY, -20, "NOT_READY", false, "not ready")                                               \
  X(ECLOSED, -21, "CLOSED", false, "closed")                                                       \
  X(EISOLATION, -22, "ISOLATION_UNAVAILABLE", false, "isolation is not available")                 \
  X(ENOMEM, -23, "OUT_OF_MEMORY", true, "out of memory")                                           \
  X(ECANCELED, -24, "CANCELED", false, "cancelled")

enum {
  SBX_OK = 0,
#define X(name, number, code, retryable, text) SBX_##name = (number),
  SBX_ERROR_MAP(X)
#undef X
};

#define SBX_ERR_MESSAGE_MAX 1024

/* An error by value: no allocation, so that running out of memory can always be reported. */
typedef struct sbx_err {
  int code;                          /* SBX_OK or one of the negative codes above */
  int status;                        /* HTTP status, 0 where there was none */
  bool may_have_run;                 /* the command may have started before this went wrong */
  bool no_effect;                    /* the request certainly changed nothing */
  uint64_t retry_after_ms;           /* what the service asked to wait; 0: it said nothing */
  const char *provider;              /* provider id with static lifetime, or NULL */
  char message[SBX_ERR_MESSAGE_MAX]; /* what happened and what to do next; NUL-terminated UTF-8 */
} sbx_err;

/* "EINVAL" for SBX_EINVAL; "" for a number that is not an error. */
const char *sbx_err_name(int code);
/* The public code without prefix: "INVALID_ARG" for SBX_EINVAL. */
const char *sbx_err_public_code(int code);
/* Whether the same call may succeed later without a change by the caller. */
bool sbx_err_retryable(int code);

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Borrowed bytes. Not NUL-terminated; `ptr` may be NULL when `len` is 0. */
typedef struct sbx_slice {
  const char *ptr;
  size_t len;
} sbx_slice;

static inline sbx_slice sbx_slice_of(const char *ptr, size_t len) {
  sbx_slice s = {ptr, len};
  return s;
}

/* ---- loop ----------------------------------------------------------------------------------- */

typedef struct sbx_loop sbx_loop;

/* Makes the library's state on `uv`. Its handles are unreferenced while nothing is in flight, so an
 * idle library never keeps uv_run() going. The caller ends it with sbx_loop_close().
 * Errors: SBX_ENOMEM, or SBX_EINVAL when libuv refuses a handle. */
int sbx_loop_new(sbx_loop **out, uv_loop_t *uv, sbx_err *err);

/* Aborts what is in flight (callbacks are called with SBX_ECLOSED), frees the state in the loop's
 * coming turns and then calls `closed`. Sandboxes must be freed before it is called or inside the
 * callbacks that it causes; no remote sandbox is deleted. `closed` may be NULL. */
void sbx_loop_close(sbx_loop *loop, void (*closed)(void *arg), void *arg);

/* ---- sandbox -------------------------------------------------------------------------------- */

typedef struct sbx_sandbox sbx_sandbox;
/* One call in flight. Valid until its callback has returned. */
typedef struct sbx_call sbx_call;

#define SBX_NO_TIMEOUT UINT64_MAX
#define SBX_MAX_OUTPUT_BYTES_DEFAULT ((size_t)1 << 20)

/* What a sandbox can do, by its provider and its options; sbx_sandbox_capabilities(). */
enum {
  SBX_CAP_SEPARATE_STREAMS = 1u << 0, /* stdout and stderr apart */
  SBX_CAP_TRUE_ORDER = 1u << 1,       /* merged output keeps the order in which it was written */
  SBX_CAP_STDIN = 1u << 2,
  SBX_CAP_CWD = 1u << 3,
  SBX_CAP_KILL = 1u << 4,     /* a timeout ends the whole process tree */
  SBX_CAP_LIST = 1u << 5,     /* sbx_sandbox_list() works */
  SBX_CAP_LOCAL = 1u << 6,    /* commands run on this machine */
  SBX_CAP_CONTEXTS = 1u << 7, /* code runs in an interpreter that keeps its state */
  SBX_CAP_LIFETIME = 1u << 8, /* sbx_sandbox_control(): the lifetime can be set */
  SBX_CAP_PAUSE = 1u << 9,    /* sbx_sandbox_control(): pause and resume */
  SBX_CAP_EXTEND = 1u << 10,  /* sbx_sandbox_control(): the lifetime can be made longer */
  SBX_CAP_PATHS = 1u << 11,   /* sbx_sandbox_stat(), _list_dir(), _remove(), _move(), _make_dir() */
  SBX_CAP_PARTS = 1u << 12,   /* sbx_sandbox_read_part(), _write_part() */
  SBX_CAP_SPAWN = 1u << 13,   /* sbx_exec_spec.open_stdin, and what it is for */
  SBX_CAP_TTY = 1u << 14,     /* sbx_exec_spec.tty */
};

/* Makes a sandbox object; no I/O, nothing is created yet.
 *  provider      "local"
 *  options_json  one JSON object, UTF-8. Common members: "defaultTimeoutMs" (integer, 30000),
 *                "startTimeoutMs" (integer, 60000), "onLost" ("recreate" | "reject"),
 *                "shell" (see sbx_exec_spec.shell), "environment" (object of the host's variables
 *                that providers look at: proxies, certificates, PATH; none is read by itself, since
 *                another thread may be changing it). The rest belongs to the provider; see its
 *                file.
 * Unknown members are refused. Errors: SBX_EINVAL, SBX_EKEY, SBX_EUNSUPPORTED (no such provider),
 * SBX_ENOMEM. */
int sbx_sandbox_new(sbx_sandbox **out, sbx_loop *loop, const char *provider, sbx_slice options_json,
                    sbx_err *err);

/* Frees the object. Calls in flight are aborted (their callbacks come with SBX_ECLOSED). Deletes
 * nothing remote; a local workspace is removed. NULL is fine. */
void sbx_sandbox_free(sbx_sandbox *sb);

uint32_t sbx_sandbox_capabilities(const sbx_sandbox *sb);
/* The provider's id of the running sandbox (local: the workspace's absolute path), or NULL before
 * a start. Borrowed until the next call into the library. */
const char *sbx_sandbox_id(const sbx_sandbox *sb);

#define SBX_ISOLATION_MAX 16384

/* What isolates the running sandbox from this machine: writes one JSON object with a member for
 * each layer, an object with "state" ("enforced", "partial", "unavailable" or "off") and perhaps
 * "errno" and "hint", and returns its length. 0 before a start, where it is not this library that
 * isolates, and for less room than SBX_ISOLATION_MAX. */
size_t sbx_sandbox_isolation(const sbx_sandbox *sb, char *out, size_t room);

/* `err` is NULL on success. */
typedef void (*sbx_done_cb)(void *arg, const sbx_err *err);

/* Creates the sandbox. Lazy for every other function, so calling it is optional; idempotent;
 * starts in flight are shared. After a close: SBX_ECLOSED. `out` may be NULL. */
int sbx_sandbox_start(sbx_sandbox *sb, sbx_done_cb cb, void *arg, sbx_call **out, sbx_err *err);

/* What a long start is at, as one JSON object with "status" and perhaps "id", "current" and "total"
 * (bytes). Never called from inside another call into the library, nor after the object's free. */
typedef void (*sbx_progress_cb)(void *arg, sbx_slice json);

/* Providers that have nothing to tell never call it. NULL: nobody listens any more. */
void sbx_sandbox_on_progress(sbx_sandbox *sb, sbx_progress_cb cb, void *arg);

/* What has become of a sandbox, as one JSON object: "event" is "created", "started", "failed",
 * "lost" or "deleted"; "id" is the provider's, where there is one; "owned": close deletes it.
 * Besides: "durationMs" of what was begun; "again", of one that had stopped; of what failed "what"
 * ("start" or "delete"), "code" (sbx_err_public_code()) and "status". Of every "created" one it is
 * told what becomes of it, also when it came too late to be used. Never called from inside another
 * call into the library, nor after the object's free. */
typedef void (*sbx_life_cb)(void *arg, sbx_slice json);

/* NULL: nobody listens any more. */
void sbx_sandbox_on_life(sbx_sandbox *sb, sbx_life_cb cb, void *arg);

#define SBX_CLOSE_GRACE_DEFAULT_MS 5000
#define SBX_CLOSE_GRACE_MAX_MS 3600000

/* Refuses new calls at once, and gives those in flight `grace_ms` to end; a command without a limit
 * gets none of it. Then what is left is ended: the process trees of commands are killed, and the
 * calls report SBX_ECLOSED. A start under way is waited for, as long as its own limit allows. At
 * last the sandbox is deleted, exactly once; one that is gone already is a success. A failed delete
 * reports its error, and a further close tries again. A close during another one joins it, and a
 * shorter grace counts for both. Closing what never started succeeds and sends nothing.
 * Errors: SBX_EINVAL for a longer grace than SBX_CLOSE_GRACE_MAX_MS, SBX_ECLOSED, SBX_ENOMEM. */
int sbx_sandbox_close(sbx_sandbox *sb, uint64_t grace_ms, sbx_done_cb cb, void *arg, sbx_err *err);

typedef enum sbx_exec_kind {
  SBX_EXEC_SHELL, /* `text` is a command line for `shell` */
  SBX_EXEC_CODE,  /* `text` is source text in `language`, and behaves as a file in the directory */
  SBX_EXEC_ARGV,  /* `argv` is run without a shell */
} sbx_exec_kind;

typedef enum sbx_language { SBX_LANG_PYTHON, SBX_LANG_NODE } sbx_language;

typedef enum sbx_stream { SBX_STDOUT, SBX_STDERR } sbx_stream;

/* Which part of too much output is kept. */
typedef enum sbx_truncate { SBX_KEEP_HEAD, SBX_KEEP_HEAD_AND_TAIL } sbx_truncate;

/* Of a terminal, in characters; 0: no terminal. */
typedef struct sbx_tty_size {
  uint16_t columns, rows;
} sbx_tty_size;

typedef struct sbx_env_var {
  sbx_slice name;  /* [A-Za-z_][A-Za-z0-9_]* */
  sbx_slice value; /* no NUL */
} sbx_env_var;

/* Zero-initialize, then set what is needed. */
typedef struct sbx_exec_spec {
  sbx_exec_kind kind;
  sbx_slice text; /* SHELL and CODE; no NUL; no limit on the size */
  /* SHELL: "bash", "sh" or an absolute path; empty: the "shell" of the options, and without one
   * bash where the sandbox has it, else sh. */
  sbx_slice shell;
  sbx_language language; /* CODE */
  const sbx_slice *argv; /* ARGV: at least one item, no NUL */
  size_t argc;
  sbx_slice cwd;          /* a path as below; empty: the base directory */
  const sbx_env_var *env; /* added to the sandbox's own environment */
  size_t env_count;
  sbx_slice stdin_bytes; /* empty: /dev/null */
  /* Standard input stays open for sbx_call_write(), and the command takes signals; `stdin_bytes` is
   * empty then. Needs SBX_CAP_SPAWN. */
  bool open_stdin;
  /* The command has a terminal of this size, which is its standard input and both of its outputs:
   * all of it comes as stdout, with the terminal's line ends. TERM is xterm-256color unless `env`
   * has another. Needs `open_stdin` and SBX_CAP_TTY. */
  sbx_tty_size tty;
  /* CODE: name of the interpreter's context to run in, made at its first use; empty: the default
   * one. Needs SBX_CAP_CONTEXTS. */
  sbx_slice context;
  uint64_t timeout_ms;     /* 0: the default; <= 2147483000; SBX_NO_TIMEOUT: none */
  size_t max_output_bytes; /* kept of each stream; 0: SBX_MAX_OUTPUT_BYTES_DEFAULT; <= 1 GiB */
  sbx_truncate truncate;
  /* What the command leaves in the background ends with it. Else it lives until its own call times
   * out or is cancelled, or the sandbox is closed. */
  bool end_background;
  bool merge_streams; /* both streams through one pipe: exact order, everything in `output` only */
} sbx_exec_spec;

typedef enum sbx_outcome {
  SBX_EXITED,    /* exit_code says how */
  SBX_SIGNALLED, /* signal_name says which; exit_code is 128 + its number where known, else 137 */
  SBX_TIMED_OUT, /* exit_code is 124 */
  SBX_CANCELLED, /* exit_code is 130 */
} sbx_outcome;

/* What is known of the process tree after a timeout or a cancel. */
typedef enum sbx_termination {
  SBX_TERM_NONE,      /* nothing had to be ended */
  SBX_TERM_CONFIRMED, /* the whole tree is gone */
  SBX_TERM_REQUESTED, /* the kill was accepted, the end was not seen */
  SBX_TERM_UNKNOWN,   /* the kill was refused or not answered */
} sbx_termination;

/* Kept bytes of one stream. `bytes.len + dropped` is what the command wrote. */
typedef struct sbx_kept {
  sbx_slice bytes; /* cut at a UTF-8 boundary where the text around the cut is UTF-8 */
  uint64_t dropped;
  size_t tail_at; /* SBX_KEEP_HEAD_AND_TAIL: where the gap is in `bytes`; else bytes.len */
} sbx_kept;

typedef struct sbx_exec_result {
  sbx_outcome outcome;
  int exit_code;
  const char *signal_name; /* "SIGKILL", or NULL */
  sbx_termination termination;
  bool background_killed;  /* processes that outlived the command were ended */
  bool background_running; /* processes that outlived the command were seen to live on */
  bool output_lost;        /* some output did not come; how much is not known */
  bool oom_killed;         /* the system has ended it for want of memory, where that is known */
  bool output_exceeded;    /* it was ended because it had written more than it may */
  uint64_t cpu_us;         /* processor time of it and what it has waited for; 0: not known */
  uint64_t peak_bytes;     /* memory of the largest of its processes; 0: not known */
  uint64_t duration_ms;
  sbx_kept output; /* both streams in the order of arrival */
  sbx_kept out;    /* stdout; empty with merge_streams */
  sbx_kept err;    /* stderr; empty with merge_streams */
  /* What an interpreter gave besides its output, empty where there is none: one JSON object with
   * "results" (an array of objects: text, html, png, ...), "droppedResults" (how many were too
   * large to keep) and, when the code failed, "error" (an object: name, value, traceback). */
  sbx_slice details;
} sbx_exec_result;

/* `err` is NULL exactly when `result` is not. A non-zero exit, a timeout and a cancel are results.
 */
typedef void (*sbx_exec_cb)(void *arg, const sbx_err *err, const sbx_exec_result *result);
/* Bytes as they arrive, at any split. Never called after sbx_exec_cb, and never from inside another
 * call into the library. */
typedef void (*sbx_output_cb)(void *arg, sbx_stream stream, sbx_slice bytes);

/* Runs one command. `on_output` may be NULL. */
int sbx_sandbox_exec(sbx_sandbox *sb, const sbx_exec_spec *spec, sbx_output_cb on_output,
                     sbx_exec_cb cb, void *arg, sbx_call **out, sbx_err *err);

/* The four below are for a command with `open_stdin`, from sbx_sandbox_exec() until its own
 * callback has returned; they may be called before it runs. Each callback comes once, for a command
 * that has ended meanwhile with SBX_ECLOSED and perhaps after the command's own. Errors at once:
 * SBX_EINVAL (the call is no such command), SBX_ECLOSED (it has ended, or its input has),
 * SBX_ETOOBIG (too much waits already), SBX_ENOMEM. */

#define SBX_INPUT_MAX ((size_t)16 << 20) /* bytes that wait for a command to take them */

/* Writes to the command's standard input, behind what was written before; `cb` is called when the
 * system has taken all of it, which it does as the command reads. SBX_ETOOBIG when with it more
 * than SBX_INPUT_MAX would wait. SBX_ECLOSED also when the command has closed its input: then a
 * part may have been read. */
int sbx_call_write(sbx_call *call, sbx_slice bytes, sbx_done_cb cb, void *arg, sbx_err *err);
/* Ends the standard input, behind what was written before; of a terminal by what Ctrl-D writes,
 * which is the end at the beginning of a line. */
int sbx_call_end_input(sbx_call *call, sbx_done_cb cb, void *arg, sbx_err *err);
/* Sends a signal to the command and what it has started in its process group. `name` is one of
 * SIGHUP, SIGINT, SIGQUIT, SIGKILL, SIGUSR1, SIGUSR2, SIGTERM, SIGCONT and SIGSTOP, else
 * SBX_EINVAL; SIGKILL ends the whole process tree. */
int sbx_call_signal(sbx_call *call, const char *name, sbx_done_cb cb, void *arg, sbx_err *err);
/* Gives the command's terminal another size, of which the command is told with SIGWINCH. SBX_EINVAL
 * also when it has no terminal, or a side of `size` is 0. */
int sbx_call_resize(sbx_call *call, sbx_tty_size size, sbx_done_cb cb, void *arg, sbx_err *err);

/* Paths, that of a working directory included: relative to the base directory, absolute, or "~" and
 * "~/x" for the home of the sandbox's user. "~other" is SBX_EINVAL; write "./~other" for such a
 * name. */

/* Creates or replaces a file, with its parent directories. */
int sbx_sandbox_write(sbx_sandbox *sb, sbx_slice path, sbx_slice bytes, sbx_done_cb cb, void *arg,
                      sbx_call **out, sbx_err *err);

/* `bytes` is NULL when there is no such file (then `err` is NULL too). */
typedef void (*sbx_read_cb)(void *arg, const sbx_err *err, const sbx_slice *bytes);

/* Reads a whole file. More than `max_bytes` (0: 2 GiB, which is also the most) is SBX_ETOOBIG. */
int sbx_sandbox_read(sbx_sandbox *sb, sbx_slice path, size_t max_bytes, sbx_read_cb cb, void *arg,
                     sbx_call **out, sbx_err *err);

/* Inside the callback of a read, or of a part's, only: takes the bytes over, which then outlive the
 * callback without a copy, until sbx_bytes_free(). NULL when there are none, or they were taken
 * already. */
char *sbx_call_take_bytes(sbx_call *call);
void sbx_bytes_free(char *bytes);

typedef struct sbx_entry {
  const char *path; /* relative to the base directory, '/' between parts; NUL-terminated */
  uint64_t size;    /* bytes */
} sbx_entry;

typedef void (*sbx_list_cb)(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count);

/* Lists all regular files below the base directory, links left out. More than `max_entries` is
 * SBX_ETOOBIG. Needs SBX_CAP_LIST, else SBX_EUNSUPPORTED. */
int sbx_sandbox_list(sbx_sandbox *sb, size_t max_entries, sbx_list_cb cb, void *arg, sbx_call **out,
                     sbx_err *err);

/* The five below need SBX_CAP_PATHS, else SBX_EUNSUPPORTED. Errors that all have: SBX_EINVAL (a
 * file stands where a directory is needed, or the other way round), SBX_EFORBIDDEN (the sandbox's
 * user may not), and on this machine SBX_EPATH (the path leaves the workspace). A '/' at the end of
 * a path says nothing. */

typedef enum sbx_file_kind {
  SBX_KIND_FILE,
  SBX_KIND_DIRECTORY,
  SBX_KIND_LINK, /* in a directory; of sbx_sandbox_stat() only one that leads nowhere */
  SBX_KIND_OTHER /* a pipe, a socket, a device */
} sbx_file_kind;

#define SBX_TIME_UNKNOWN INT64_MIN

typedef struct sbx_stat {
  const char *name; /* in its directory, NUL-terminated; NULL of sbx_sandbox_stat() */
  sbx_file_kind kind;
  uint64_t size;       /* bytes; 0 of what is no regular file */
  int64_t modified_ms; /* since 1970, UTC; SBX_TIME_UNKNOWN where the sandbox has no way to tell */
  int mode;            /* permissions, 07777 at most; -1 where the sandbox has no way to tell */
} sbx_stat;

/* `info` is NULL when there is nothing (then `err` is NULL too). */
typedef void (*sbx_stat_cb)(void *arg, const sbx_err *err, const sbx_stat *info);

/* What is at a path; links are followed. */
int sbx_sandbox_stat(sbx_sandbox *sb, sbx_slice path, sbx_stat_cb cb, void *arg, sbx_call **out,
                     sbx_err *err);

typedef void (*sbx_dir_cb)(void *arg, const sbx_err *err, const sbx_stat *entries, size_t count);

/* What is in a directory, without "." and "..", in the order of the names' bytes; links are not
 * followed. Fails with SBX_ENOTFOUND where there is none, and with SBX_ETOOBIG when there is more
 * than `max_entries`. */
int sbx_sandbox_list_dir(sbx_sandbox *sb, sbx_slice path, size_t max_entries, sbx_dir_cb cb,
                         void *arg, sbx_call **out, sbx_err *err);

/* `existed`: there was something, which is gone now. */
typedef void (*sbx_remove_cb)(void *arg, const sbx_err *err, bool existed);

/* Removes a file, or a link itself; a directory with all that is in it when it is `recursive`, else
 * that is SBX_EINVAL. */
int sbx_sandbox_remove(sbx_sandbox *sb, sbx_slice path, bool recursive, sbx_remove_cb cb, void *arg,
                       sbx_call **out, sbx_err *err);

/* Gives a file, directory or link another path, whose parent directories are made. A file that has
 * the path is replaced, a directory is not: SBX_EINVAL. SBX_ENOTFOUND when there is nothing at
 * `from`. */
int sbx_sandbox_move(sbx_sandbox *sb, sbx_slice from, sbx_slice to, sbx_done_cb cb, void *arg,
                     sbx_call **out, sbx_err *err);

/* Makes a directory with its parents; success when it is there already. */
int sbx_sandbox_make_dir(sbx_sandbox *sb, sbx_slice path, sbx_done_cb cb, void *arg, sbx_call **out,
                         sbx_err *err);

/* Files in parts, so that none need fit into memory. They need SBX_CAP_PARTS, else
 * SBX_EUNSUPPORTED. Each part is a call of its own, with the limit that other calls of files have.
 */

#define SBX_PART_MAX ((size_t)64 << 20) /* bytes of one part */

typedef struct sbx_part {
  sbx_slice bytes;
  uint64_t size;     /* of the whole file; 0 of a file that the kernel makes, which has none */
  bool last;         /* nothing comes behind it */
  const char *stamp; /* stays the same while the file does; NUL-terminated */
} sbx_part;

/* `part` is NULL when there is no such file (then `err` is NULL too). */
typedef void (*sbx_part_cb)(void *arg, const sbx_err *err, const sbx_part *part);

/* Reads at most `max_bytes` (SBX_PART_MAX at most) of a file from `offset` on. `stamp` is that of
 * the parts before, or empty: when the file is another one since, or has changed, that is
 * SBX_ECONFLICT, so that no reader gets a mixture. */
int sbx_sandbox_read_part(sbx_sandbox *sb, sbx_slice path, uint64_t offset, size_t max_bytes,
                          sbx_slice stamp, sbx_part_cb cb, void *arg, sbx_call **out, sbx_err *err);

typedef enum sbx_part_step {
  SBX_PART_MORE, /* a part that is not the last one, and not empty */
  SBX_PART_LAST, /* with it the file takes its place; it may be empty */
  SBX_PART_DROP  /* what was written is removed, and the file stays as it was */
} sbx_part_step;

#define SBX_TOKEN_LENGTH 32

/* Writes a file in parts, one after the other, from `offset` 0 on. Until the last one they are kept
 * beside the path, under a name that no list shows and that is made of `token`: 32 random digits,
 * 0 to 9 and a to f, the same for all parts. Then the file appears as by sbx_sandbox_write(). A
 * part that has failed can be sent again. SBX_ECONFLICT: what was written before is not there any
 * more. */
int sbx_sandbox_write_part(sbx_sandbox *sb, sbx_slice path, sbx_slice token, uint64_t offset,
                           sbx_slice bytes, sbx_part_step step, sbx_done_cb cb, void *arg,
                           sbx_call **out, sbx_err *err);

typedef enum sbx_control {
  SBX_SET_LIFETIME, /* the provider ends the sandbox `seconds` from now; needs SBX_CAP_LIFETIME */
  SBX_PAUSE,        /* its state is kept, nothing runs; needs SBX_CAP_PAUSE */
  SBX_RESUME,       /* goes on after a pause, for `seconds` (0: the lifetime of the options) */
  SBX_EXTEND_LIFETIME, /* it ends `seconds` later than it would; needs SBX_CAP_EXTEND */
} sbx_control;

/* Changes the life of a sandbox. Calls that run when a pause begins may fail with SBX_ECONFLICT,
 * and so does every call from then on until the resume; the sandbox is not lost. */
int sbx_sandbox_control(sbx_sandbox *sb, sbx_control control, uint64_t seconds, sbx_done_cb cb,
                        void *arg, sbx_call **out, sbx_err *err);

/* `ids` are those of the sandboxes that were deleted, also when there is an error. */
typedef void (*sbx_sweep_cb)(void *arg, const sbx_err *err, const char *const *ids, size_t count);

/* Deletes what other processes have left at a provider: sandboxes that this library has made, and
 * that certainly nobody needs any more. The options are those of a sandbox that say where the
 * provider is. Errors: as sbx_sandbox_new(); SBX_EUNSUPPORTED where a provider ends such ones by
 * itself. */
int sbx_sweep(sbx_loop *loop, const char *provider, sbx_slice options_json, sbx_sweep_cb cb,
              void *arg, sbx_err *err);

/* Asks a call to end early. An exec ends the process tree and reports SBX_CANCELLED; every other
 * call reports SBX_ECANCELED. So does a call that waits for the start, an exec too; the start goes
 * on. Cancelling twice is fine. */
void sbx_call_cancel(sbx_call *call);

#ifdef __cplusplus
}
#endif

#endif
