/* docker.h - what the files of the docker provider do for each other.
 *
 *   provider.c  the provider's table
 *   open.c      agrees on a version; pulls, creates and starts, or attaches
 *   close.c     delete, also what a lost create may have made
 *   probe.c     alive or gone
 *   files.c     put and get, and by which way; list
 *   archive.c   a file by the engine's archive calls
 *   process.c   one process in a container
 *   sweep.c     deletes what other processes have left
 *   pull.c      fetches an image
 *   engine.c    which engine this is, and what it can do
 *   owner.c     whose containers these are
 *   wire.c      requests to the engine, and what its refusals mean
 *   config.c, place.c, mounts.c    options
 *
 * Each includes what stands below it only. */
#ifndef SBX_DOCKER_H
#define SBX_DOCKER_H

#include "providers/docker/wire.h"

/* ---- life ----------------------------------------------------------------------------------- */

sbx_op *sbx__docker_open(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__docker_close(sbx_session *session, sbx_op_done done, void *arg);
sbx_op *sbx__docker_probe(sbx_session *session, sbx_liveness *out, sbx_op_done done, void *arg);

/* Deletes the containers that other processes have left. */
sbx_op *sbx__docker_sweep(sbx_config *config, sbx_listing *out, sbx_op_done done, void *arg);

/* Fetches the image of the options; the engine's progress is read, and so are its errors. */
sbx_op *sbx__docker_pull_image(sbx_session *session, sbx_op_done done, void *arg);

/* ---- files ---------------------------------------------------------------------------------- */

sbx_op *sbx__docker_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                        void *arg);
sbx_op *sbx__docker_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                        void *arg);
sbx_op *sbx__docker_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                            sbx_op_done done, void *arg);
sbx_op *sbx__docker_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                         sbx_op_done done, void *arg);

#endif
