/* provider.h - the seam between the port's semantics (src/sandbox) and the wire (a folder each).
 *
 * A provider holds wire steps only. It never retries an exec, never decides what a timeout means,
 * never starts lazily: src/sandbox does that, once for all.
 *
 * Two objects: a `config` is what the user's options say (one per sbx_sandbox, immutable); a
 * `session` is one sandbox at the provider, from open to close. A lost sandbox is replaced by a new
 * session of the same config.
 *
 * Every function that returns an sbx_op starts an operation whose `done` is called once, from the
 * ready list; NULL means out of memory, and nothing was started. Arguments are copied. A session
 * outlives its ops, except when the loop ends. The deadline of the op that is returned belongs to
 * src/sandbox; a provider may set deadlines on what it runs below. An op that fails with SBX_ELOST
 * says that the sandbox is certainly gone; src/sandbox then does not probe. */
#ifndef SBX_PROVIDER_H
#define SBX_PROVIDER_H

#include "core/json.h"
#include "core/op.h"
#include "core/output.h"

/* How the error of a working directory that is not there ends, at every provider. It is SBX_EINVAL:
 * what is wrong is the caller's word for it, and nothing ran. */
#define SBX__CWD_ADVICE "; make that directory first, or give `cwd` another one"

/* The same of a listing that has more files than were asked for. */
#define SBX__LIST_ADVICE "; raise `maxEntries`, or list a part with a command such as find"

/* The same of a directory that is to be removed. */
#define SBX__REMOVE_ADVICE "; pass `recursive` to remove it with all that is in it"

/* How a part that cannot be had is said, at every provider. */
#define SBX__PART_CHANGED                                                                          \
  "the file changed while it was read; read it again from its beginning, or copy it first with a " \
  "command such as cp"
#define SBX__PART_GONE                                                                             \
  "what was written before is not there any more, or has changed; write the file from its "        \
  "beginning"

/* A file that is written in parts lies beside its path meanwhile, under the name ".cloudsandbox-",
 * a token and one of these: all that has come, and a part on its way to its end. */
#define SBX__PART_NAME ".cloudsandbox-"
#define SBX__PART_ALL ".part"
#define SBX__PART_PIECE ".piece"

typedef struct sbx_config sbx_config;   /* each provider's own struct */
typedef struct sbx_session sbx_session; /* each provider's own struct */

typedef enum sbx_liveness {
  SBX_ALIVE,
  SBX_GONE,
  SBX_HALTED, /* not running, but it has its files: open starts it again */
  SBX_LIVENESS_UNKNOWN
} sbx_liveness;

/* How a command ended, as far as the wire tells. `outcome` is SBX_EXITED or SBX_SIGNALLED; a reply
 * that tells neither is an error of the op (SBX_EPROTO), never a guessed exit. */
typedef struct sbx_exec_status {
  sbx_outcome outcome;
  int exit_code;
  int signal_number;       /* 0 when unknown */
  const char *signal_name; /* static text or NULL */
  bool started;            /* the command may have run; valid also when the op failed */
  bool background_killed;  /* what it had left behind was ended */
  bool background_running; /* what it has left behind was seen to live on */
  bool output_lost;        /* some output did not come; how much is not known */
  bool oom_killed;         /* it was ended for want of memory; false also where that is not known */
  bool output_exceeded;    /* it was ended because it had written more than it may */
  bool limit_kept;         /* the provider itself ended the command, because of its timeout_ms */
  bool tree_gone;          /* the provider saw the whole process tree end */
  uint64_t cpu_us;      /* processor time of the command and what it has waited for; 0: unknown */
  uint64_t peak_bytes;  /* memory of the largest of its processes; 0: unknown */
  bool kill_is_partial; /* what it has started may outlive a kill that has succeeded */
} sbx_exec_status;

/* The regular files found by `list`, or what `sweep` has deleted. */
typedef struct sbx_listing {
  sbx_entry *entries;
  size_t count;
} sbx_listing;

typedef enum sbx_path_verb {
  SBX_PATH_STAT,
  SBX_PATH_LIST,
  SBX_PATH_REMOVE,
  SBX_PATH_MOVE,
  SBX_PATH_MAKE,
  SBX_PATH_PART, /* reads a part of a file; SBX_ECONFLICT when it changes meanwhile */
  /* What is in the file `path` becomes the end of the file `to`, and `path` goes away. It may come
   * twice. SBX_ECONFLICT when `to` is not as long as it says, or one of them is not there. */
  SBX_PATH_JOIN,
  /* `to` becomes what is in the file `path`, as `put` would write it, and `path` goes away. When
   * there is no room `to` is as it was, or what was to come is whole beside it and the error names
   * that. SBX_ECONFLICT when `path` is not there. */
  SBX_PATH_TAKE
} sbx_path_verb;

/* One of sbx_sandbox_stat() and its like, or a step of sbx_sandbox_write_part(). Paths have no '/'
 * at their end, and are not empty. */
typedef struct sbx_path_request {
  sbx_path_verb verb;
  sbx_slice path;
  sbx_slice to; /* MOVE, JOIN, TAKE */
  bool recursive;
  size_t max_entries;
  uint64_t offset; /* PART: where it begins. JOIN: how long `to` is before */
  size_t length;   /* PART: at most so many bytes. JOIN: how long `path` is */
} sbx_path_request;

/* What is at a path, one, or in a directory. Of a part: the file, its name the stamp. */
typedef struct sbx_stats {
  sbx_stat *items;
  size_t count;
  sbx_buf part;
} sbx_stats;

typedef enum sbx_input_kind {
  SBX_INPUT_WRITE,
  SBX_INPUT_END,
  SBX_INPUT_SIGNAL,
  SBX_INPUT_RESIZE
} sbx_input_kind;

/* What a command with `open_stdin` is given while it runs. */
typedef struct sbx_input {
  sbx_input_kind kind;
  sbx_slice bytes;    /* WRITE: not empty */
  const char *signal; /* SIGNAL: "SIGTERM", of those that sbx_call_signal() knows; static */
  sbx_tty_size size;  /* RESIZE */
} sbx_input;

typedef struct sbx_provider {
  const char *id;
  uint32_t caps; /* what its sandboxes can do at most; see sbx_provider_caps() */
  /* Those of `caps` that a sandbox of this config has not. NULL: none. */
  uint32_t (*lacks)(const sbx_config *config);
  /* How much longer than the limit, which every exec carries to the provider, our own clock waits
   * for the provider to keep it, in ms. 0: the provider keeps no clock of its own. */
  uint32_t limit_margin_ms;
  /* How long a kill may take before the answer is "unknown", in ms. */
  uint32_t kill_budget_ms;
  /* Success of a kill says more than that it was accepted: nothing of the command was left. */
  bool kill_confirms;
  /* A probe may say SBX_HALTED. */
  bool restarts;
  /* Also in a sandbox that is not ours to delete something of ours runs, which `close` ends. */
  bool closes_attached;

  const char *const *options; /* names of its own options, then NULL */
  size_t config_size;
  /* Fills a zeroed config from the options, an object that holds the common members too. No I/O.
   * `err` is there, and clear. See sbx_provider_configure(). */
  int (*configure)(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
  /* Also after a configure() that has failed. */
  void (*config_free)(sbx_config *config);
  /* The service's address, for messages, without anything secret; NULL for this machine. */
  const char *(*service)(const sbx_config *config);

  /* Takes every credential of the config and of the session (NULL: none) out of a message, with
   * the functions of core/secrets.h. NULL: there are none. */
  void (*hide)(const sbx_config *config, const sbx_session *session, sbx_err *err);

  /* A session that exists only here; NULL on out of memory. */
  sbx_session *(*session_new)(sbx_config *config);
  /* Frees the session; what is still open of it on this machine is released. Deletes nothing
   * remote. */
  void (*session_free)(sbx_session *session);
  /* NULL before open has succeeded. */
  const char *(*session_id)(const sbx_session *session);
  /* What isolates it, as one JSON object, appended to `out`. NULL, or nothing appended: it is not
   * this library that isolates. */
  void (*session_isolation)(const sbx_session *session, sbx_buf *out);
  /* Whether close() deletes it: false for a sandbox that was only attached to. */
  bool (*session_owned)(const sbx_session *session);

  /* What an open is at goes to `fn` as one JSON object (see sbx_progress_cb), from wherever it
   * comes to be known: it may only take it. NULL: there is nothing to tell. */
  void (*watch)(sbx_session *session, void (*fn)(void *arg, sbx_slice json), void *arg);

  /* Creates the sandbox. When it fails, or is aborted, something may still have been created;
   * `close` then finds and removes it. An error with `no_effect` says that nothing was: it may be
   * called again on the same session.
   *
   * With `restarts` it is also called on a session that was open, and that a probe has found
   * SBX_HALTED, while other ops of the session may be in flight: it starts the sandbox again, and
   * never makes one. SBX_ELOST then says that nothing is left to be started, or to be deleted. */
  sbx_op *(*open)(sbx_session *session, sbx_op_done done, void *arg);
  /* Deletes what open made, or may have made; success when there is nothing (any more). */
  sbx_op *(*close)(sbx_session *session, sbx_op_done done, void *arg);
  sbx_op *(*probe)(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

  /* Runs one command. `spec` is checked and complete (timeout_ms and max_output_bytes set;
   * shell empty only for: bash where there is one, else sh), is
   * borrowed for the call; `out` and `status` live until the op is done. A kind of command that
   * this sandbox cannot run is an error of the op, with `status->started` false. The op finishes
   * when the command has ended and its output is complete. abort(SBX_ECANCELED) drops the
   * connection and finishes soon, whatever the command does: src/sandbox uses it after kill had its
   * chance. */
  sbx_op *(*exec)(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                  sbx_exec_status *status, sbx_op_done done, void *arg);
  /* Ends the whole process tree of a running exec. Success: the kill was accepted; the exec op then
   * finishes by itself, and may be freed before the kill is done. NULL without SBX_CAP_KILL. */
  sbx_op *(*kill)(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);
  /* Gives an exec with `open_stdin` something, when it has begun and can take it. One of WRITE and
   * END is in flight at most, and one SIGNAL beside it. The bytes are borrowed until the op is done
   * or aborted. It finishes no later than the exec: with SBX_ECLOSED when that ends first, or its
   * input has been closed by the command. NULL without SBX_CAP_SPAWN. */
  sbx_op *(*give)(sbx_session *session, sbx_op *exec, const sbx_input *input, sbx_op_done done,
                  void *arg);

  sbx_op *(*put)(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                 void *arg);
  /* SBX_ENOTFOUND when there is no such file; `out` has its cap set. */
  sbx_op *(*get)(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done, void *arg);
  /* NULL without SBX_CAP_LIST. */
  sbx_op *(*list)(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                  void *arg);
  /* SBX_ENOTFOUND: there is nothing at the path. A list need not be in order. NULL without
   * SBX_CAP_PATHS and SBX_CAP_PARTS, which belong together here. */
  sbx_op *(*at_path)(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                     sbx_op_done done, void *arg);
  /* NULL without SBX_CAP_LIFETIME, SBX_CAP_EXTEND and SBX_CAP_PAUSE. */
  sbx_op *(*control)(sbx_session *session, sbx_control control, uint64_t seconds, sbx_op_done done,
                     void *arg);
  /* Deletes all sandboxes that this library has made and that nobody can need any more; `path` of
   * each entry is its id, also when it fails. NULL: they end by themselves. */
  sbx_op *(*sweep)(sbx_config *config, sbx_listing *out, sbx_op_done done, void *arg);
} sbx_provider;

extern const sbx_provider sbx_local_provider;
extern const sbx_provider sbx_e2b_provider;
extern const sbx_provider sbx_daytona_provider;
extern const sbx_provider sbx_docker_provider;
extern const sbx_provider sbx_http_provider;
extern const sbx_provider sbx_vercel_provider;
extern const sbx_provider sbx_agentcore_provider;
extern const sbx_provider sbx_modal_provider;

/* The provider with this id, or NULL. */
const sbx_provider *sbx_provider_find(const char *id);

/* A config of these options; SBX_EINVAL also for a member that is neither common nor the
 * provider's.
 */
int sbx_provider_configure(sbx_config **out, const sbx_provider *provider, sbx_loop *loop,
                           const sbx_json *options, sbx_err *err);

/* What a sandbox of this config can do. */
uint32_t sbx_provider_caps(const sbx_provider *provider, const sbx_config *config);

/* Takes the path, whatever comes of it; NULL: there was no memory for it. SBX_ENOMEM. */
int sbx_listing_add(sbx_listing *listing, char *path, uint64_t size, sbx_err *err);
void sbx_listing_free(sbx_listing *listing);

/* Adds a copy of `stat`, its name `name` when that has a pointer. SBX_ENOMEM. */
int sbx_stats_add(sbx_stats *stats, const sbx_stat *stat, sbx_slice name, sbx_err *err);
void sbx_stats_free(sbx_stats *stats);
/* How the errors of all providers say it, `verb` being "look at", "list", "remove", "move", "make";
 * the path is added by who knows it. */
const char *sbx_path_verb_text(sbx_path_verb verb);

/* Whether every shell takes this as the name of a variable: letters, digits and _, no digit first.
 */
bool sbx_provider_is_env_name(sbx_slice name);

#endif
