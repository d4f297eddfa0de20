/* files.h - one file that is written or read over HTTP.
 *
 * A provider says where the bytes go and in which form; the rest is the same everywhere: the cap,
 * the path in every message, and that "no such file" is the service's own word about the path, as
 * the rows of its table say, and never a 404 of something else. */
#ifndef SBX_REMOTE_FILES_H
#define SBX_REMOTE_FILES_H

#include "providers/remote/exchange.h"

enum { SBX_REMOTE_PATH_MAX = 16 * 1024 };

typedef struct sbx_remote_file {
  sbx_steps steps; /* first */
  const sbx_remote_service *service;
  const char *verb;
  sbx_buf path;   /* as the caller said it, until the provider makes it another */
  sbx_buf bytes;  /* put: they stay until the op ends, so that parts may borrow them */
  sbx_buf *out;   /* get */
  sbx_op *beside; /* what a provider has let run beside it ends with it */
} sbx_remote_file;

/* The op of a put or a get; NULL on out of memory. When it has finished already, the path was too
 * long, or there was no memory for the bytes. */
sbx_remote_file *sbx_remote_files_put(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_service *service, sbx_slice path,
                                      sbx_slice bytes, sbx_op_done done, void *arg);
sbx_remote_file *sbx_remote_files_get(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_service *service, sbx_slice path,
                                      sbx_buf *out, sbx_op_done done, void *arg);
static inline sbx_remote_file *sbx_remote_files_of(sbx_steps *steps) {
  return (sbx_remote_file *)(void *)steps;
}

/* The bytes as the part `name` of a form, borrowed. */
sbx_http_part sbx_remote_files_part(const sbx_remote_file *file, const char *name);
/* A GET whose bytes come into `out`, up to its cap. Without URL and headers. */
sbx_http_request sbx_remote_files_download(sbx_remote_file *file);

/* Each may stand as `on_reply`: the end of an upload, and of a download. */
void sbx_remote_files_on_put(sbx_steps *steps, sbx_http *reply);
void sbx_remote_files_on_got(sbx_steps *steps, sbx_http *reply);
/* Ends with an error, the path added to its words. */
void sbx_remote_files_fail(sbx_remote_file *file, sbx_err *err);

#endif
