/* files.c - put, get and list.
 *
 * Files go through the streams of a process, as the user of the commands, but for those that can be
 * read by the engine's archive calls; see reads_archives(). */
#include "providers/docker/archive.h"
#include "providers/docker/docker.h"
#include "providers/docker/process.h"

sbx_op *sbx__docker_put(sbx_session *session, sbx_slice path, sbx_slice bytes, sbx_op_done done,
                        void *arg) {
  return sbx_process_put(&sbx__docker_processes, session, session->config->loop, path, bytes, done,
                         arg);
}

/* Whether files are read by the engine's archive calls where those give the same as a process:
 *
 * - Podman's cost half as much as a process does, and look at what the container sees. They do so
 *   as root; so not where a mount may hold what only root may read, nor in a container that is
 *   somebody else's, of whose file systems nothing is known.
 * - Docker's show another file system where the container's is in memory, which is all that may be
 *   written by default, and take as long as a process.
 *
 * Nothing is written by them, since that is not the same on any engine: a file that is there is
 * replaced, with its owner, its other names and who has it open; whether the user may write there
 * is not told; new directories are root's; what is broken off stays behind as root's, so that the
 * user can neither write nor remove it; and what is in memory does not count for `memoryMb`. */
static bool reads_archives(const sbx_session *session) {
  return session->is_podman && session->config->attach == NULL && !session->config->has_mounts;
}

sbx_op *sbx__docker_get(sbx_session *session, sbx_slice path, sbx_buf *out, sbx_op_done done,
                        void *arg) {
  return sbx_process_get(&sbx__docker_processes, session, session->config->loop, path, out,
                         reads_archives(session) ? sbx__docker_fetch : NULL, done, arg);
}

/* ---- list ----------------------------------------------------------------------------------- */

static void send_line(sbx_runner_op *op, sbx_buf *body, const sbx_runner_sending *how) {
  sbx_process_line(&sbx__docker_processes, op, body, how);
}

static const sbx_runner_wire wire = {.provider = "docker", .send = send_line};

static sbx_runner *runner_of(sbx_session *session) {
  sbx_runner *runner = &session->runner;
  runner->wire = &wire;
  runner->loop = session->config->loop;
  runner->json = true;
  return runner;
}

sbx_op *sbx__docker_list(sbx_session *session, size_t max_entries, sbx_listing *out,
                         sbx_op_done done, void *arg) {
  return sbx_runner_list(runner_of(session), session, sbx_slice_of(NULL, 0), max_entries, out, done,
                         arg);
}

/* ---- what is at a path ------------------------------------------------------------------------
 */

sbx_op *sbx__docker_at_path(sbx_session *session, const sbx_path_request *request, sbx_stats *out,
                            sbx_op_done done, void *arg) {
  return sbx_runner_at_path(runner_of(session), session, request, NULL, out, done, arg);
}
