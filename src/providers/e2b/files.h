/* files.h - files of a sandbox. */
#ifndef SBX_E2B_FILES_H
#define SBX_E2B_FILES_H

#include "core/op.h"
#include "providers/provider.h"

/* A file to be written: its bytes are `prefix` and then `bytes`, both borrowed. */
typedef struct sbx__e2b_upload {
  char path[64]; /* "": none */
  sbx_slice prefix;
  sbx_slice bytes;
} sbx__e2b_upload;

sbx_op *sbx__e2b_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                     void *arg);
sbx_op *sbx__e2b_upload_file(sbx_session *session, const sbx__e2b_upload *upload, sbx_op_done done,
                             void *arg);
/* How the names of our own files begin; they are not listed. */
#define SBX__E2B_OURS ".cloudsandbox-"

/* Asks for the removal of a file, by the provider's name of it; succeeds whatever comes of it. */
sbx_op *sbx__e2b_remove_file(sbx_session *session, sbx_slice path, sbx_op_done done, void *arg);
sbx_op *sbx__e2b_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                     void *arg);
sbx_op *sbx__e2b_list(sbx_session *session, size_t max_entries, sbx_listing *out, sbx_op_done done,
                      void *arg);

#endif
