/* daytona.h - what the files of the Daytona provider share.
 *
 *   provider.c  sessions and probe; the provider's table
 *   config.c    options
 *   request.c   requests to the API and to the toolbox, and what their refusals mean
 *   open.c      create or attach, wait until started
 *   close.c     delete, also what a lost create may have made
 *   script.c    the text that runs a command inside the sandbox, and reading its report
 *   exec.c      one command from its request to its report; kill
 *   files.c     put and get
 *   list.c      list */
#ifndef SBX_DAYTONA_H
#define SBX_DAYTONA_H

#include "providers/provider.h"
#include "providers/remote/remote.h"

/* ---- options -------------------------------------------------------------------------------- */

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers;      /* of every request: credentials and names */
  sbx_headers json_headers; /* the same for a request with a JSON body */
  char *api_url;
  char *toolbox_url; /* in place of what the API says; NULL: none */
  char *attach;      /* id or name of an existing sandbox; NULL: make one */
  char *workspace;   /* name to give; NULL: one of ours */
  char *create_body; /* JSON members of a create that are always the same, without braces */
  bool keyless;      /* there are no credentials: every start fails */
  bool owned;
  bool ephemeral; /* it is deleted as soon as it stops */
};

#define SBX__DAYTONA_NO_KEY "missing API key: give apiKey, or jwtToken with organizationId"

extern const char *const sbx__daytona_options[];
int sbx__daytona_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                           sbx_err *err);
void sbx__daytona_config_free(sbx_config *config);

/* ---- session -------------------------------------------------------------------------------- */

enum {
  SBX__DAYTONA_TAG = 32,
  SBX__DAYTONA_LEFT = 128,
  SBX__DAYTONA_SPARE = 4,
};

/* Commands that are over for us, and whose folders are still in the sandbox: the next command's
 * request takes them away. The oldest comes first. */
typedef struct sbx__daytona_left {
  char tags[SBX__DAYTONA_LEFT][SBX__DAYTONA_TAG + 1];
  size_t count;
  uint64_t gone;  /* how many have been taken off the list: the number of the oldest one */
  uint64_t asked; /* up to this number a request of its own was sent for them */
} sbx__daytona_left;

/* Tags of commands to come: one question to the system brings so many. */
typedef struct sbx__daytona_spare {
  char digits[SBX__DAYTONA_SPARE * SBX__DAYTONA_TAG + 1];
  size_t count;
} sbx__daytona_spare;

struct sbx_session {
  sbx_config *config;
  char tag[SBX__DAYTONA_TAG + 1]; /* label by which a create whose answer was lost is found */
  char *name;                     /* what it was created as */
  char *id;
  char *toolbox;  /* base URL of its toolbox, the id included */
  char *dir;      /* its working directory; NULL: not known */
  bool may_exist; /* a create was sent, and no refusal came */
  bool open;
  bool old_shell; /* its daemon has no real shell for commands */
  bool old_env;   /* its daemon takes no variables with a command */
  /* Both are changed by commands, and by nothing else. */
  sbx__daytona_left left;
  sbx__daytona_spare spare;
};

sbx_op *sbx__daytona_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_close(sbx_session *session, sbx_op_done done, void *arg);

/* Copies what a Sandbox object says into the session: id, and where the toolbox is.
 * SBX_EPROTO, SBX_ENOMEM. */
int sbx__daytona_take(sbx_session *session, const sbx_json *sandbox, sbx_err *err);

/* How a state counts while one waits for the start. */
typedef enum sbx__daytona_state {
  SBX__DAYTONA_STARTED,
  SBX__DAYTONA_HALTED,  /* stopped, archived, paused: can be started again */
  SBX__DAYTONA_HALTING, /* stopping, archiving, pausing: on the way there */
  SBX__DAYTONA_FAILED,  /* error, build_failed */
  SBX__DAYTONA_GONE,    /* destroyed, destroying */
  SBX__DAYTONA_CHANGING /* everything else, states of later servers too */
} sbx__daytona_state;

sbx__daytona_state sbx__daytona_state_of(const sbx_json *sandbox);

/* ---- requests ------------------------------------------------------------------------------- */

/* Room for a URL; longer ones fail with SBX_ETOOBIG. */
enum { SBX__DAYTONA_URL_MAX = 16 * 1024 };

/* {baseURL}/sandbox/{id}{rest} */
int sbx__daytona_api_url(sbx_buf *out, const sbx_config *config, const char *id, const char *rest);
/* {toolbox}{path}, "?path=" and the file's absolute path after it when `file` is not empty. */
int sbx__daytona_tool_url(sbx_buf *out, const sbx_session *session, const char *path,
                          sbx_slice file);
/* The path as it is sent: relative ones begin at the working directory. */
int sbx__daytona_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path);

/* Sends one request; `url` is used up, with the error that it may have; `json` (may be NULL) is
 * taken. The whole operation has a deadline, so the request has none. */
void sbx__daytona_send(sbx_steps *steps, const char *method, sbx_buf *url, sbx_buf *json,
                       bool repeatable, sbx_steps_reply on_reply);
/* A request about one sandbox, without a body, that may be repeated; see sbx__daytona_api_url(). */
void sbx__daytona_to_api(sbx_steps *steps, const char *method, const char *id, const char *rest,
                         sbx_steps_reply on_reply);

/* Whether the API itself says that there is no such thing: a 404 in its own form. Others stand
 * before it and have answers of the same status, which say nothing about a sandbox. */
bool sbx__daytona_is_gone(const sbx_http *reply);
/* For answers of the API. What went wrong: the exchange's own error, or the refusal in words.
 * `verb` says what was tried. SBX_ENOTFOUND is the API's own word; a web page in place of JSON, or
 * somebody else's 404, is SBX_EPROTO. Returns SBX_OK for a success. */
int sbx__daytona_check(sbx_err *err, const sbx_http *reply, const char *verb);
/* The same for the toolbox, where a refusal may mean that the sandbox has stopped or is gone:
 * such ones are SBX_ECONFLICT, which leads to a look at it. */
int sbx__daytona_check_tool(sbx_err *err, const sbx_http *reply, const char *verb);
/* Whether the refusal says that there is no such route. */
bool sbx__daytona_no_route(const sbx_http *reply);
/* Whether a web page came: then it was no server of Daytona that answered. */
bool sbx__daytona_is_page(const sbx_http *reply);
bool sbx__daytona_says(sbx_slice body, const char *text);

/* ---- commands ------------------------------------------------------------------------------- */

sbx_op *sbx__daytona_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                          sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);

/* How much of each output comes with a report: all of it up to `head` + `tail` bytes, else only
 * these parts. */
typedef struct sbx__daytona_share {
  size_t head;
  size_t tail;
} sbx__daytona_share;

/* The body of the request that runs a command. `tag` names its folder in the sandbox; `keep`: what
 * does not fit into the report stays there to be fetched. It takes the folders of `session->left`
 * away. SBX_ENOMEM, SBX_ETOOBIG. */
int sbx__daytona_write_command(sbx_buf *out, const sbx_session *session, const sbx_exec_spec *spec,
                               const char *tag, sbx__daytona_share share, bool keep);
/* Fetches output from the two offsets on, up to `most` bytes of each; waits a moment when there is
 * none, unless the command is `over`. */
int sbx__daytona_write_fetch(sbx_buf *out, const sbx_session *session, const char *tag,
                             const uint64_t at[2], size_t most, bool over);
/* Asks for the report of a command whose request broke off. It waits some seconds for it; in its
 * place may come SBX__DAYTONA_GOING, _ABSENT or _ENDED. */
int sbx__daytona_write_ask(sbx_buf *out, const sbx_session *session, const char *tag,
                           sbx__daytona_share share);
/* Takes away the folders of `session->left`. */
int sbx__daytona_write_forget(sbx_buf *out, const sbx_session *session, const char *tag);
int sbx__daytona_write_kill(sbx_buf *out, const sbx_session *session, const char *tag);

/* Lists the regular files below the working directory: the report's stdout is, of each, its size, a
 * blank, its path and NUL. At most `most` bytes. */
int sbx__daytona_write_list(sbx_buf *out, const sbx_session *session, const char *tag, size_t most);

typedef enum sbx__daytona_end {
  SBX__DAYTONA_RAN,      /* it ended by itself */
  SBX__DAYTONA_LATE,     /* its limit ended it */
  SBX__DAYTONA_STOPPED,  /* a kill ended it, or kept it from being started */
  SBX__DAYTONA_UNSTORED, /* it could not be started: no room for its text */
  SBX__DAYTONA_AGAIN,    /* the request came a second time, and was not run again */
  SBX__DAYTONA_GOING,    /* it runs still */
  SBX__DAYTONA_ABSENT,   /* nothing of it is there: it has not begun */
  SBX__DAYTONA_ENDED,    /* the program that ran it was killed before it could report */
} sbx__daytona_end;

typedef struct sbx__daytona_report {
  sbx__daytona_end end;
  int exit_code;
  bool tree_gone;
  uint64_t size[2]; /* bytes that each stream has */
  sbx_buf head[2];  /* the bytes that came */
  sbx_buf tail[2];
} sbx__daytona_report;

void sbx__daytona_report_init(sbx__daytona_report *report);
void sbx__daytona_report_deinit(sbx__daytona_report *report);
/* Finds the report in what a request has printed. SBX_EPROTO when there is none, or not the whole
 * of it. */
int sbx__daytona_read_report(sbx__daytona_report *report, sbx_slice printed, const char *tag,
                             sbx_err *err);

/* The same from a reply of the toolbox; `doc` is freed by the caller and owns `printed`. */
int sbx__daytona_read_reply(sbx__daytona_report *report, const sbx_http *reply, const char *tag,
                            sbx_slice *printed, sbx_json_doc **doc, sbx_err *err);

/* How the request of a script is sent. */
typedef struct sbx__daytona_sending {
  bool once;           /* it runs a command */
  uint64_t timeout_ms; /* SBX_NO_TIMEOUT: the operation has a deadline */
  size_t max_bytes;    /* of the reply; 0: SBX_HTTP_MAX_BYTES_DEFAULT */
} sbx__daytona_sending;

/* Sends a script to the toolbox; its body `json` is used up, with the error that it may have. */
void sbx__daytona_send_script(sbx_steps *steps, sbx_buf *json, sbx__daytona_sending how,
                              sbx_steps_reply on_reply);
/* What a script has printed. */
int sbx__daytona_take_report(sbx__daytona_report *report, const sbx_http *reply, const char *tag,
                             const char *verb, sbx_err *err);

/* ---- files ---------------------------------------------------------------------------------- */

sbx_op *sbx__daytona_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                         void *arg);
sbx_op *sbx__daytona_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                         void *arg);
sbx_op *sbx__daytona_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                          sbx_op_done done, void *arg);

#endif
