/* e2b.h - what the files of the E2B provider share.
 *
 *   provider.c  sessions, the provider's table
 *   config.c    options
 *   wire.c      one request to the control plane or into a sandbox; what a failed one means
 *   open.c      create, attach
 *   close.c     delete, also what a create has made whose answer was lost
 *   life.c      alive or gone; lifetime, pause, resume
 *   process.c   one process from its start event to its end, as the process service streams it
 *   command.c   the request that starts a command, and the line that says that it has ended
 *   exec.c      one command: uploads, the process, the end of its tree
 *   kill.c      ends a process tree
 *   files.c     put, remove, get, list
 *   code.c      code in the interpreter of templates that have one
 *   context.c   the interpreter's contexts
 *   cell.c      the reply to one piece of code, line by line
 *
 * Two hosts: the control plane gets the API key, a sandbox's own services get the token that came
 * with the sandbox. Neither ever gets the other. */
#ifndef SBX_E2B_H
#define SBX_E2B_H

#include "core/http.h"
#include "providers/provider.h"
#include "providers/remote/remote.h"

enum { SBX__E2B_ENVD_PORT = 49983, SBX__E2B_CODE_PORT = 49999, SBX__E2B_TOKEN_LEN = 32 };

/* In the metadata of everything that we create. */
#define SBX__E2B_TAG_NAME "cloudsandbox-tag"

/* ---- options -------------------------------------------------------------------------------- */

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  char *api_key; /* NULL: none was given */
  char *api_url;
  char *domain;
  char *sandbox_url;   /* for all sandboxes; NULL: made of the domain */
  char *attach_id;     /* an existing sandbox to use; NULL: create one */
  char *create_json;   /* the members of a create request, but for those that a session adds */
  char *metadata_json; /* the members of its `metadata`; NULL: none */
  sbx_headers headers; /* the user's own, for both hosts */
  uint32_t lifetime_s;
  bool debug;       /* everything is on this machine; nothing is created or deleted */
  bool first_api;   /* create by the first generation of the API, without a token */
  bool owned;       /* close deletes it */
  bool can_pause;   /* sandboxes may be paused by others than us */
  bool interpreter; /* code goes to the interpreter */
};

extern const char *const sbx__e2b_options[];
int sbx__e2b_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__e2b_config_free(sbx_config *config);
int sbx__e2b_missing_key(sbx_err *err);
/* Whether addresses can be made of it. */
bool sbx__e2b_is_domain(sbx_slice text);
/* The same for an id, which is cut to what routes: old records have "<id>-<client>". */
bool sbx__e2b_cut_id(sbx_slice *id);

/* ---- sessions ------------------------------------------------------------------------------- */

typedef struct sbx__e2b_context sbx__e2b_context;

struct sbx_session {
  sbx_config *config;
  char tag[SBX__E2B_TOKEN_LEN + 1]; /* "" until the first create */
  bool may_exist;                   /* a create request may have been executed */
  bool open;
  char *id;
  char *access_token;  /* NULL: the sandbox asks for none */
  char *traffic_token; /* NULL: the same */
  char *envd_url;
  char *code_url;
  uint32_t envd_version; /* as SBX__E2B_VERSION() */
  bool can_pause;        /* when it is not found it may be paused */

  size_t execs;           /* in flight */
  uint64_t busy_until_ms; /* how long they may take, at most */
  uint32_t lifetime_s;    /* what it was set to last */
  uint64_t ends_at_ms;
  sbx_timer keep_alive;
  sbx_op *refresh;     /* the request that prolongs it */
  bool cannot_refresh; /* it was refused */

  sbx__e2b_context *contexts; /* of the interpreter, that we made */
};

#define SBX__E2B_VERSION(major, minor, patch)                                                      \
  ((uint32_t)(major) << 24 | (uint32_t)(minor) << 12 | (uint32_t)(patch))

/* Takes what a create or a connect has answered. SBX_EPROTO, SBX_ENOMEM; the session is then as it
 * was. */
int sbx__e2b_take_sandbox(sbx_session *session, sbx_slice reply, sbx_err *err);
/* The sandbox of debug mode. SBX_ENOMEM, SBX_EPROTO. */
int sbx__e2b_take_debug(sbx_session *session, sbx_err *err);
/* Appends the provider's name of a path: a relative one begins at the home directory, whatever its
 * first character is. */
void sbx__e2b_append_path(sbx_buf *out, sbx_slice path);

/* ---- requests ------------------------------------------------------------------------------- */

typedef struct sbx__e2b_request {
  sbx_http_request http;    /* without `url` and `headers` */
  sbx_slice path;           /* encoded, with its query */
  const char *content_type; /* of the body */
  /* Into a sandbox only: */
  int port;          /* 0: SBX__E2B_ENVD_PORT */
  bool as_root;      /* else as the template's default user */
  bool rpc;          /* a call of one of the daemon's Connect services */
  bool stream;       /* whose reply is a stream */
  uint64_t limit_ms; /* of that; 0: none */
} sbx__e2b_request;

/* Each finishes with the error that `take_body` may have. */
void sbx__e2b_to_api(sbx_steps *steps, const sbx__e2b_request *request, sbx_steps_reply on_reply);
void sbx__e2b_to_sandbox(sbx_steps *steps, const sbx__e2b_request *request,
                         sbx_steps_reply on_reply);

/* What an answer 502 from a sandbox's host says. */
typedef enum sbx__e2b_bad_gateway {
  SBX__E2B_NO_SANDBOX, /* there is no such sandbox, or it is paused */
  SBX__E2B_NO_PORT,    /* the sandbox runs, the service does not */
  SBX__E2B_UNCLEAR
} sbx__e2b_bad_gateway;

sbx__e2b_bad_gateway sbx__e2b_read_502(sbx_slice body);
/* Whether the control plane itself says that what was named is not there; also an ingress before it
 * that has lost its way to it answers 404. */
bool sbx__e2b_is_404(const sbx_http *http);
/* Fill `err` for a reply that is no success and return its code. `verb` says what was tried. */
int sbx__e2b_api_error(const sbx_http *http, const char *verb, sbx_err *err);
int sbx__e2b_sandbox_error(const sbx_session *session, const sbx_http *http, const char *verb,
                           sbx_err *err);
/* First in an `on_reply` of a call into a sandbox that has no use for anything but a 200: finishes
 * with the error of all else. False: finished. */
bool sbx__e2b_answered(sbx_steps *steps, const sbx_http *reply, const char *verb);

/* ---- life ----------------------------------------------------------------------------------- */

sbx_op *sbx__e2b_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_control(sbx_session *session, sbx_control control, uint64_t seconds,
                         sbx_op_done done, void *arg);
/* Whether the control plane is known not to have the second generation of its calls. */
bool sbx__e2b_has_first_api_only(const sbx_config *config);
/* Opens the session on the sandbox `id`: prolongs its lifetime, and resumes it when it is paused.
 */
sbx_op *sbx__e2b_connect(sbx_session *session, const char *id, uint64_t seconds, sbx_op_done done,
                         void *arg);

/* The lifetime begins anew now. */
void sbx__e2b_life_set(sbx_session *session, uint64_t seconds);
/* A command that may run for `limit_ms` begins: while it runs, the lifetime does not end. */
void sbx__e2b_life_enter(sbx_session *session, uint64_t limit_ms);
/* It has ended. */
void sbx__e2b_life_leave(sbx_session *session);
void sbx__e2b_life_init(sbx_session *session);
void sbx__e2b_life_deinit(sbx_session *session);

/* ---- processes ------------------------------------------------------------------------------ */

/* What became of a process; valid until its op's `done` has returned, also when the op failed. */
typedef struct sbx__e2b_end {
  int64_t pid; /* 0: its start was not told */
  bool may_have_run;
  bool ended;              /* what follows is known */
  bool exited;             /* by itself; else by a signal */
  int exit_code;           /* when exited */
  int signal_number;       /* else, 0 when unknown */
  const char *signal_name; /* static text or NULL */
  bool limit_passed;       /* the service has ended the stream because of the limit */
} sbx__e2b_end;

typedef struct sbx__e2b_process_spec {
  sbx_buf *request; /* JSON of the start request; its bytes are taken */
  bool as_root;
  uint64_t limit_ms; /* SBX_NO_TIMEOUT: none */
  /* Called from the ready list; may leave or abort the process. May be NULL. */
  void (*on_output)(void *arg, sbx_stream stream, sbx_slice bytes);
} sbx__e2b_process_spec;

/* Starts a process and follows it until it has ended. `arg` is also on_output's. */
sbx_op *sbx__e2b_process(sbx_session *session, const sbx__e2b_process_spec *spec, sbx_op_done done,
                         void *arg);
const sbx__e2b_end *sbx__e2b_process_end(const sbx_op *process);
/* Stops following; the op ends with success. */
void sbx__e2b_process_leave(sbx_op *process);

/* ---- commands ------------------------------------------------------------------------------- */

/* Finds, at any split, the line by which our wrapper says that the command has ended, and takes it
 * out of the stream: RS, the token, a blank, the exit code, LF. */
typedef struct sbx__e2b_trailer {
  const char *token;
  char held[SBX__E2B_TOKEN_LEN + 8]; /* what may be the beginning of the line */
  size_t held_len;
  bool found;
  int exit_code;
  void (*fn)(void *arg, sbx_slice bytes); /* gets all that is not the line */
  void *arg;
} sbx__e2b_trailer;

void sbx__e2b_trailer_feed(sbx__e2b_trailer *trailer, sbx_slice bytes);
/* The stream has ended: what was held is no line. */
void sbx__e2b_trailer_end(sbx__e2b_trailer *trailer);

/* A command as it goes over the wire: files to upload first, then the start request. The slices are
 * borrowed from the spec. */
typedef struct sbx__e2b_upload {
  char path[64]; /* "": none */
  sbx_slice prefix;
  sbx_slice bytes;
} sbx__e2b_upload;

typedef struct sbx__e2b_command {
  sbx_buf request;
  sbx__e2b_upload uploads[2]; /* stdin, and text that is too long for an argument */
} sbx__e2b_command;

/* `token` marks the command's processes. SBX_EINVAL, SBX_ETOOBIG, SBX_ENOMEM. */
int sbx__e2b_command_make(sbx__e2b_command *command, const sbx_exec_spec *spec, const char *token,
                          sbx_err *err);
void sbx__e2b_command_free(sbx__e2b_command *command);
/* The start request of the command that ends all processes marked with `token`. */
int sbx__e2b_command_killer(sbx_buf *request, const char *token);

sbx_op *sbx__e2b_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg);
/* The tree of `exec`, an op of sbx__e2b_exec(), is about to be killed by somebody who keeps `exec`
 * in *killer; that becomes NULL when `exec` has ended. Gives the token, and the id of the first
 * process, 0 when unknown. */
const char *sbx__e2b_exec_begin_kill(sbx_op *exec, sbx_op **killer, int64_t *pid);
/* Nothing is left of it: it ends soon, also when its stream does not. */
void sbx__e2b_exec_tree_gone(sbx_op *exec);
/* The killer goes. */
void sbx__e2b_exec_end_kill(sbx_op *exec);

sbx_op *sbx__e2b_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);
/* Success: no process marked with `token` is left. `pid` as above. */
sbx_op *sbx__e2b_kill_tree(sbx_session *session, const char *token, int64_t pid, sbx_op_done done,
                           void *arg);

/* ---- the interpreter ------------------------------------------------------------------------ */

sbx_op *sbx__e2b_code(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                      sbx_exec_status *status, sbx_op_done done, void *arg);
/* Restarts the context of `code`, an op of sbx__e2b_code(); NULL when it is none or no memory. */
sbx_op *sbx__e2b_code_kill(sbx_session *session, sbx_op *code, sbx_op_done done, void *arg);
bool sbx__e2b_is_code(const sbx_op *op);

/* The name of a language at the interpreter. */
const char *sbx__e2b_language(sbx_language language);
/* Whether `spec` names a context, or a directory, and so wants another one than the default. */
bool sbx__e2b_needs_context(const sbx_exec_spec *spec);
/* Finds that context; makes it at its first use. sbx_free() *id; it must live as long as the op. */
sbx_op *sbx__e2b_context_wait(sbx_session *session, const sbx_exec_spec *spec, char **id,
                              sbx_op_done done, void *arg);
/* The service does not know it any more: the next use makes a new one. */
void sbx__e2b_context_forget(sbx_session *session, const char *id);
/* Restarts the context, `id` NULL: the default one of `language`; its state is lost. */
sbx_op *sbx__e2b_context_restart(sbx_session *session, const char *id, sbx_language language,
                                 sbx_op_done done, void *arg);
void sbx__e2b_contexts_free(sbx_session *session);

/* The reply to one piece of code. */
typedef struct sbx__e2b_cell {
  sbx_output *out;
  sbx_buf results; /* JSON objects with commas between */
  size_t dropped;
  sbx_buf error; /* JSON object */
  bool failed;
  bool kernel_lost; /* the service lost sight of the code */
  bool ended;
} sbx__e2b_cell;

void sbx__e2b_cell_init(sbx__e2b_cell *cell, sbx_output *out);
void sbx__e2b_cell_deinit(sbx__e2b_cell *cell);
/* Takes one line. SBX_EPROTO, SBX_ENOMEM. */
int sbx__e2b_cell_line(sbx__e2b_cell *cell, sbx_slice line, sbx_err *err);
/* Writes the details of the output. SBX_ENOMEM. */
int sbx__e2b_cell_finish(sbx__e2b_cell *cell);

/* ---- files ---------------------------------------------------------------------------------- */

sbx_op *sbx__e2b_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                     void *arg);
/* The file's bytes are the upload's prefix and then its bytes. */
sbx_op *sbx__e2b_upload_file(sbx_session *session, const sbx__e2b_upload *upload, sbx_op_done done,
                             void *arg);
/* Asks for the removal of an upload; nobody waits for the answer. */
void sbx__e2b_remove_file(sbx_session *session, const char *path);
sbx_op *sbx__e2b_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg);
sbx_op *sbx__e2b_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                      void *arg);

#endif
