/* service.h - what the files of the http provider do for each other. It speaks to any service that
 * has the five requests of docs/http-protocol.md. (sbx__hs_: sbx__http_ is the core's.)
 *
 *   provider.c  the provider's table
 *   config.c    options, and the manifest that they make
 *   life.c      create or attach; alive or gone; delete
 *   files.c     put and get
 *   exec.c      the service's exec as the runner's wire: commands, kill, list, other files
 *   wire.c      requests to the service, and what their refusals mean
 *
 * Each uses what stands below it only. */
#ifndef SBX_HTTP_SERVICE_H
#define SBX_HTTP_SERVICE_H

#include "providers/remote/exchange.h"
#include "providers/remote/runner/runner.h"

struct sbx_config {
  sbx_loop *loop;
  sbx_http_client *http;
  sbx_headers headers; /* of every request */
  char *url;
  char *attach;      /* id of an existing session; NULL: make one */
  char *dir;         /* the manifest's working_dir; NULL: the service knows it */
  char *create_body; /* the manifest: it has variables in it */
  bool owned;
};

struct sbx_session {
  sbx_config *config;
  char *id;
  char *dir; /* where commands begin, as they see it; NULL: it is not open */
  sbx_runner runner;
};

/* ---- options -------------------------------------------------------------------------------- */

extern const char *const sbx__hs_options[];
int sbx__hs_configure(sbx_config *config, sbx_loop *loop, const sbx_json *options, sbx_err *err);
void sbx__hs_config_free(sbx_config *config);

/* ---- life ----------------------------------------------------------------------------------- */

sbx_op *sbx__hs_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__hs_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__hs_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

/* ---- files ---------------------------------------------------------------------------------- */

sbx_op *sbx__hs_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                    void *arg);
sbx_op *sbx__hs_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                    void *arg);

/* ---- commands ------------------------------------------------------------------------------- */

sbx_op *sbx__hs_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                     sbx_exec_status *status, sbx_op_done done, void *arg);
sbx_op *sbx__hs_kill(sbx_session *session, sbx_op *exec, sbx_op_done done, void *arg);
sbx_op *sbx__hs_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                        sbx_op_done done, void *arg);
sbx_op *sbx__hs_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                     void *arg);
/* Files by commands of ours: they reach what the service's own routes may refuse. */
sbx_op *sbx__hs_read(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg);
sbx_op *sbx__hs_write(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                      void *arg);

/* ---- wire ----------------------------------------------------------------------------------- */

/* Room for a URL; longer ones fail with SBX_ETOOBIG. */
enum { SBX__HS_URL_MAX = 64 * 1024 };

/* Whether the path is below the working directory by its words, which are then what is left of it.
 * Commands may see that directory under another name than the service: it has two. */
bool sbx__hs_below(const sbx_session *session, sbx_slice *path);
/* The path as commands see it: absolute, or "~" and what is below it. */
int sbx__hs_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path);
/* Whether a path below it names a file without detours, so that every service takes it. */
bool sbx__hs_is_plain(sbx_slice path);

/* Each sends one request, which is given without URL and headers.
 * POST {base}/sessions, and DELETE {base}/sessions/{id} */
void sbx__hs_create(sbx_steps *steps, sbx_steps_reply on_reply);
void sbx__hs_delete(sbx_steps *steps, const char *id, sbx_steps_reply on_reply);
/* {base}/sessions/{id}/exec, with a body that sbx__hs_begin() has begun and that is whole. */
void sbx__hs_send(sbx_steps *steps, sbx_buf *body, const sbx_http_request *request,
                  sbx_steps_reply on_reply);
/* {base}/sessions/{id}/files?path=, of what sbx__hs_below() has left. */
void sbx__hs_to_file(sbx_steps *steps, sbx_slice rest, const sbx_http_request *request,
                     sbx_steps_reply on_reply);

/* Begins the body of an exec, up to the text of `/bin/sh -c` inside its string. `spec` may be NULL;
 * a limit of 0 is none. */
void sbx__hs_begin(const sbx_session *session, sbx_buf *body, const sbx_exec_spec *spec,
                   uint64_t limit_s);
/* Runs `script`, ours, without anything that JSON would escape; it harms nobody when it runs twice.
 */
void sbx__hs_ask(sbx_steps *steps, const char *script, sbx_steps_reply on_reply);

/* What a request is about: what a 404 means depends on it. */
typedef enum sbx__hs_about { SBX__HS_SERVICE, SBX__HS_SESSION, SBX__HS_FILE } sbx__hs_about;

/* As sbx_remote_exchange_check(); SBX_ELOST when the service says that there is no such session,
 * SBX_ENOTFOUND of a file only by its own word. */
int sbx__hs_check(sbx_err *err, const sbx_http *reply, const char *verb, sbx__hs_about about);
/* The same, and the JSON of a success. */
int sbx__hs_json(sbx_json_doc **doc, const sbx_http *reply, const char *verb, sbx__hs_about about,
                 sbx_err *err);

#endif
