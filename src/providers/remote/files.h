/* files.h - one file that is written or read over HTTP.
 *
 * A provider says where the bytes go and in which form; the rest is the same everywhere: the cap,
 * the path in every message, and that "no such file" is the service's own word about the path, as
 * the rows of its table say, and never a 404 of something else. So is what to do about files that
 * are none: those of the kernel are read by a command, pipes and devices are refused. */
#ifndef SBX_REMOTE_FILES_H
#define SBX_REMOTE_FILES_H

#include "providers/remote/exchange.h"

enum { SBX_REMOTE_PATH_MAX = 16 * 1024 };

/* How the files of a provider are reached. */
typedef struct sbx_remote_files {
  const char *provider;
  int (*check)(sbx_err *err, const sbx_session *session, const sbx_http *reply, const char *verb);
  /* Reads a file by a command. */
  sbx_op *(*read)(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done, void *arg);
  /* Writes one by a command; NULL where sbx_remote_files_write() is not used. */
  sbx_op *(*write)(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                   void *arg);
  /* Asks what is at the path; the answer has the mode in letters, as Go writes it. NULL: nothing
   * answers that, and a command tries to read it. */
  void (*look)(sbx_steps *steps, sbx_slice path, sbx_steps_reply on_reply);
  bool (*mode)(const sbx_json *answer, sbx_slice *mode);
} sbx_remote_files;

typedef struct sbx_remote_file {
  sbx_steps steps; /* first */
  sbx_loop *loop;
  const sbx_remote_files *files;
  const char *verb;
  sbx_buf path;   /* as the caller said it, until the provider makes it another */
  sbx_buf said;   /* then as the caller said it, for messages; empty before */
  sbx_buf bytes;  /* put: they stay until the op ends, so that parts may borrow them */
  sbx_buf *out;   /* get */
  sbx_op *beside; /* the look at what is silent; it ends with it */
} sbx_remote_file;

/* The op of a put or a get; NULL on out of memory. When it has finished already, the path was too
 * long, or there was no memory for the bytes. */
sbx_remote_file *sbx_remote_files_put(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_files *files, sbx_slice path,
                                      sbx_slice bytes, sbx_op_done done, void *arg);
sbx_remote_file *sbx_remote_files_get(sbx_session *session, sbx_loop *loop,
                                      const sbx_remote_files *files, sbx_slice path, sbx_buf *out,
                                      sbx_op_done done, void *arg);
static inline sbx_remote_file *sbx_remote_files_of(sbx_steps *steps) {
  return (sbx_remote_file *)(void *)steps;
}

/* The bytes as the part `name` of a form, borrowed. */
sbx_http_part sbx_remote_files_part(const char *name, sbx_slice bytes);
/* A GET whose bytes come into `out`, up to its cap. Without URL and headers. */
sbx_http_request sbx_remote_files_download(sbx_remote_file *file);

/* Whether the kernel makes up the file: it says that it is empty, or has a page. */
bool sbx_remote_files_is_of_kernel(const sbx_remote_file *file);
/* Each goes on by a command, whatever has come so far: a get, and a put. */
void sbx_remote_files_read(sbx_remote_file *file);
void sbx_remote_files_write(sbx_remote_file *file);
/* After the request was sent: when nothing comes of it for a while, what is at the path is looked
 * at, since an open of a pipe waits for its other end. */
void sbx_remote_files_watch(sbx_remote_file *file);

/* Each may stand as `on_reply`: the end of an upload, and of a download. */
void sbx_remote_files_on_put(sbx_steps *steps, sbx_http *reply);
void sbx_remote_files_on_got(sbx_steps *steps, sbx_http *reply);
/* Ends with an error, the path added to its words. */
void sbx_remote_files_fail(sbx_remote_file *file, sbx_err *err);

#endif
