/* streamed.c - a command whose outputs come as they are written.
 *
 * Invariant: what the streams bring reaches the output once and in order, without the lines by
 * which the program says the end. */
#include "providers/remote/runner/streamed.h"

#include "core/err.h"
#include "core/rand.h"

#include <stdio.h>

enum { MAX_PATH = 64 * 1024 };

/* Out of memory loses the bytes, which are then counted as dropped. */
static void on_clean_bytes(void *arg, sbx_slice bytes) {
  const sbx_runner_stream *end = arg;
  sbx_output_add(end->of->out, end->stream, bytes);
}

static void show(char *out, size_t size, sbx_slice text) {
  snprintf(out, size, "%.*s", (int)(text.len < size ? text.len : size),
           text.len > 0 ? text.ptr : "");
}

int sbx_runner_streamed_init(sbx_runner_streamed *s, const sbx_exec_spec *spec, sbx_output *out,
                             sbx_exec_status *status, sbx_err *err) {
  s->out = out;
  s->status = status;
  show(s->shell, sizeof s->shell, spec->shell);
  show(s->dir, sizeof s->dir, spec->cwd);
  sbx_buf_init(&s->main, MAX_PATH);
  for (size_t i = 0; i < 2; i++) {
    s->ends[i] = (sbx_runner_stream){.of = s, .stream = (sbx_stream)i};
    s->ends[i].trailer.token = s->token;
    s->ends[i].trailer.fn = on_clean_bytes;
    s->ends[i].trailer.arg = &s->ends[i];
  }
  int rc = sbx_random_hex(s->token, SBX_RUNNER_TOKEN, err);
  if (rc != SBX_OK)
    return rc;
  snprintf(s->mark, sizeof s->mark, SBX_RUNNER_MARK "=%s", s->token);
  if (spec->kind == SBX_EXEC_CODE) {
    sbx_buf_append_slice(&s->main, spec->cwd);
    sbx_buf_appendf(&s->main, "%s.cloudsandbox-%s.%s", spec->cwd.len > 0 ? "/" : "", s->token,
                    spec->language == SBX_LANG_PYTHON ? "py" : "js");
  }
  return s->main.error == SBX_OK ? SBX_OK : sbx_err_set(err, s->main.error, NULL);
}

void sbx_runner_streamed_deinit(sbx_runner_streamed *s) {
  sbx_buf_deinit(&s->main);
}

void sbx_runner_streamed_feed(sbx_runner_streamed *s, sbx_stream stream, sbx_slice bytes) {
  sbx_runner_trailer_feed(&s->ends[stream].trailer, bytes);
  if (sbx_runner_streamed_told(s))
    sbx_runner_streamed_drain(s);
}

void sbx_runner_streamed_flush(sbx_runner_streamed *s) {
  sbx_runner_trailer_end(&s->ends[0].trailer);
  sbx_runner_trailer_end(&s->ends[1].trailer);
}

void sbx_runner_streamed_drain(sbx_runner_streamed *s) {
  if (!s->drain.armed && !s->stopped)
    sbx_timer_start(&s->drain, s->drain_ms);
}

void sbx_runner_streamed_stop(sbx_runner_streamed *s) {
  s->stopped = true;
  sbx_timer_stop(&s->drain);
}

bool sbx_runner_streamed_told(const sbx_runner_streamed *s) {
  return s->ends[0].trailer.found && s->ends[1].trailer.found;
}

const sbx_runner_trailer *sbx_runner_streamed_line(const sbx_runner_streamed *s) {
  return &s->ends[0].trailer;
}

bool sbx_runner_streamed_unstarted(const sbx_runner_streamed *s, const char *provider,
                                   sbx_err *err) {
  const sbx_runner_trailer *line = sbx_runner_streamed_line(s);
  if (!line->found)
    return false;
  if (line->exit_code == SBX_RUNNER_NO_SHELL)
    sbx_runner_no_shell(err, provider, s->shell);
  else if (line->exit_code == SBX_RUNNER_NO_DIRECTORY)
    sbx_runner_no_directory(err, provider, s->dir);
  else
    return false;
  s->status->started = false;
  return true;
}

const sbx_err *sbx_runner_streamed_tree(sbx_runner_streamed *s, bool gone) {
  s->status->tree_gone = gone;
  if (s->failure.code == SBX_OK)
    return NULL;
  sbx_err_append(&s->failure,
                 gone ? "; what it had started was ended" : "; it was not seen to end");
  return &s->failure;
}

void sbx_runner_streamed_killed(sbx_runner_streamed *s) {
  s->status->outcome = SBX_SIGNALLED;
  s->status->signal_number = 9;
  s->status->signal_name = "SIGKILL";
}
