/* daytona.h - what the files of the Daytona provider do for each other.
 *
 *   provider.c  the provider's table
 *   config.c    options
 *   open.c      create or attach, wait until started
 *   close.c     delete, also what a lost create may have made
 *   probe.c     alive, halted or gone
 *   exec.c      one command from its request to its report; kill
 *   files.c     put and get
 *   list.c      list
 *   script.c    the text that runs a command inside the sandbox, and reading its report
 *   wire.c      requests to the API and to the toolbox, and what their refusals mean
 *   session.c   a sandbox as it is known here, and what a Sandbox object says of it
 *
 * Each includes what stands below it only. */
#ifndef SBX_DAYTONA_H
#define SBX_DAYTONA_H

#include "providers/daytona/wire.h"

/* ---- options -------------------------------------------------------------------------------- */

extern const char *const sbx__daytona_options[];
int sbx__daytona_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options,
                           sbx_err *err);
void sbx__daytona_config_free(sbx_config *config);

/* ---- life ----------------------------------------------------------------------------------- */

sbx_op *sbx__daytona_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__daytona_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

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
