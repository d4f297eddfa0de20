/* process.c - one process in a container.
 *
 *   exec create -> exec start: frames until the connection ends -> the exit code, unless it is told
 *
 * Invariants: the start is sent once. An exit code is what the engine says of a process that runs
 * no more, never a guess. */
#include "providers/docker/process.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/frames.h"
#include "providers/docker/wire.h"
#include "providers/remote/identity.h"
#include "providers/remote/runner/args.h"

#include <string.h>

enum {
  MAX_REQUEST = 64 * 1024 * 1024,
  MAX_WORDS = 512,
  /* The engine learns of the end a little after the streams have ended. */
  FIRST_LOOK_MS = 10,
  LONGEST_LOOK_MS = 200,
  LOOKS_MS = 2500,
};

typedef struct process {
  sbx_steps steps;
  sbx_process_end end;
  sbx_process_spec spec; /* without its request */
  sbx_frames frames;
  char *exec_id;
  sbx_buf words;
  sbx_buf input;   /* with the line that the program waits for; empty: it needs none */
  sbx_err failure; /* what the frames say */
  uint64_t looks_until_ms;
  uint64_t look_ms;
} process;

static process *process_of(sbx_steps *steps) {
  return (process *)(void *)steps;
}

static void release(sbx_steps *steps) {
  process *p = process_of(steps);
  sbx_free(p->exec_id);
  sbx_buf_deinit(&p->words);
  sbx_buf_deinit(&p->input);
}

static void drop_stream(process *p) {
  sbx_op *http = p->steps.request;
  sbx_op_drop(&p->steps.request, SBX_ECANCELED);
  if (http != NULL && p->exec_id != NULL)
    p->end.may_have_run = p->end.may_have_run || sbx_http_of(http)->sent_maybe;
}

static void on_ending(sbx_steps *steps, int reason) {
  (void)reason;
  drop_stream(process_of(steps));
}

/* ---- how it ended --------------------------------------------------------------------------- */

static void ask(sbx_steps *steps);

static void on_exit_code(sbx_steps *steps, sbx_http *reply) {
  process *p = process_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_err err;
  bool running = true;
  int64_t code = 0;
  int rc = sbx__docker_json(&doc, steps->session->config, &sbx__docker_container, reply,
                            "ask how the command ended", &err);
  const sbx_json *root = rc == SBX_OK ? sbx_json_root(doc) : NULL;
  if (rc == SBX_OK &&
      (!sbx_json_bool(sbx_json_get(root, "Running"), &running) ||
       (!running && !sbx_json_int(sbx_json_get(root, "ExitCode"), INT32_MIN, INT32_MAX, &code))))
    rc = sbx_err_set(&err, SBX_EPROTO, "docker: the engine does not say how the command ended");
  sbx_json_free(doc, true);
  if (rc == SBX_OK && running && sbx_now_ms() < p->looks_until_ms) {
    sbx_steps_wait(steps, p->look_ms, ask);
    p->look_ms = p->look_ms < LONGEST_LOOK_MS ? p->look_ms * 2 : LONGEST_LOOK_MS;
    return;
  }
  if (rc == SBX_OK && running)
    rc = sbx_err_set(&err, SBX_ENET, "docker: the command's stream ended while it runs on");
  p->end.exited = rc == SBX_OK;
  p->end.exit_code = (int)code;
  err.no_effect = false; /* of this request; the command has run */
  sbx_steps_finish(steps, rc != SBX_OK ? &err : NULL);
}

static void ask(sbx_steps *steps) {
  process *p = process_of(steps);
  sbx_buf url;
  sbx__docker_url(&url, steps->session->config, "/exec/");
  sbx_buf_append_str(&url, p->exec_id);
  sbx_buf_append_str(&url, "/json");
  sbx__docker_send(steps, "GET", &url, NULL, true, on_exit_code);
}

static void on_stream_end(sbx_steps *steps, sbx_http *reply) {
  process *p = process_of(steps);
  sbx_err err;
  int rc = sbx__docker_check(&err, steps->session->config, &sbx__docker_container, reply,
                             "run a command");
  bool streamed = reply->status >= 200 && reply->status < 300;
  p->end.may_have_run = rc == SBX_OK || streamed || !err.no_effect;
  p->end.words = sbx_buf_slice(&p->words);
  bool told = p->spec.is_told != NULL && p->spec.is_told(steps->op.arg);
  if (told && streamed) {
    sbx_steps_finish(steps, NULL);
    return;
  }
  if (rc == SBX_OK && p->failure.code == SBX_OK)
    rc = sbx_frames_finish(&p->frames, &err);
  if (rc != SBX_OK || p->failure.code != SBX_OK) {
    sbx_steps_finish(steps, p->failure.code != SBX_OK ? &p->failure : &err);
    return;
  }
  p->looks_until_ms = sbx_now_ms() + LOOKS_MS;
  p->look_ms = FIRST_LOOK_MS;
  ask(steps);
}

/* ---- the streams ---------------------------------------------------------------------------- */

static int on_frame(void *arg, sbx_frame frame, sbx_slice bytes, sbx_err *err) {
  process *p = arg;
  size_t room = MAX_WORDS - p->words.len;
  if (p->steps.op.finished) /* it was left, in the midst of what came */
    return SBX_OK;
  sbx_buf_append(&p->words, bytes.ptr, bytes.len < room ? bytes.len : room);
  /* Podman's own words, in the process's place. */
  if (p->steps.session->is_podman && frame == SBX_FRAME_STDERR &&
      sbx_slice_starts_with(bytes, sbx_slice_str("Error: read unixpacket ")))
    return SBX_OK;
  if (frame == SBX_FRAME_ERROR) {
    sbx_err_set(err, SBX_EPROVIDER, "docker: the engine gave the command up: ");
    sbx_err_append_remote(err, bytes);
    sbx_err_copy(&p->failure, err);
    return err->code;
  }
  if (p->spec.on_output != NULL)
    p->spec.on_output(p->steps.op.arg, frame == SBX_FRAME_STDERR ? SBX_STDERR : SBX_STDOUT, bytes);
  return SBX_OK;
}

static int on_bytes(void *arg, sbx_slice bytes, sbx_err *err) {
  return sbx_frames_feed(&((process *)arg)->frames, bytes, err);
}

static bool tells_end(const sbx_session *session) {
  /* Podman loses what was printed when an input was not read to its end. */
  return !session->config->https && !session->is_podman;
}

static void start(process *p) {
  const sbx_config *config = p->steps.session->config;
  sbx_buf url;
  sbx_http_request request = {
      .method = "POST",
      .headers = &config->headers,
      .body = sbx_slice_str("{\"Detach\":false,\"Tty\":false}"),
      .timeout_ms = SBX_NO_TIMEOUT,
      .on_bytes = on_bytes,
      .consumer = p,
      .upgrade = "tcp",
      .input = p->spec.input,
      .end_input = p->spec.end_input && tells_end(p->steps.session),
  };
  sbx__docker_url(&url, config, "/exec/");
  sbx_buf_append_str(&url, p->exec_id);
  sbx_buf_append_str(&url, "/start");
  sbx_remote_exchange_send(&p->steps, config->http, &url, &request, NULL, on_stream_end);
}

/* ---- create --------------------------------------------------------------------------------- */

static void on_created(sbx_steps *steps, sbx_http *reply) {
  process *p = process_of(steps);
  sbx_json_doc *doc = NULL;
  sbx_slice id = {NULL, 0};
  sbx_err err;
  int rc = sbx__docker_json(&doc, steps->session->config, &sbx__docker_container, reply,
                            "prepare a command", &err);
  if (rc == SBX_OK) {
    sbx_json_string(sbx_json_get(sbx_json_root(doc), "Id"), &id);
    rc = sbx_remote_identity_take(&p->exec_id, id, "docker", &err);
  }
  sbx_json_free(doc, false);
  if (rc == SBX_OK)
    start(p);
  else
    sbx_steps_finish(steps, &err);
}

static void put_str(sbx_json_out *json, const char *text) {
  sbx_json_put_string(json, sbx_slice_str(text));
}

static void put_name(sbx_json_out *json, const char *name) {
  sbx_json_put_name(json, sbx_slice_str(name));
}

/* Podman may run a short process, and forget what it has printed, before it has looked who wants to
 * have it. So there every program waits for a line, which comes to it only once that is settled. */
#define WAITS "IFS= read -r _cs_v\\n"
static const char go[] = "\n";

static void put_program(sbx_json_out *json, const sbx_session *session, sbx_slice program) {
  sbx_buf text;
  if (!session->is_podman) {
    sbx_json_put_escaped(json, program);
    return;
  }
  sbx_buf_init(&text, MAX_REQUEST);
  sbx_buf_append_str(&text, WAITS);
  sbx_buf_append_slice(&text, program);
  sbx_json_put_escaped(json, sbx_buf_slice(&text));
  if (text.error != SBX_OK)
    json->buf->error = text.error;
  sbx_buf_deinit(&text);
}

void sbx__docker_process_begin(sbx_process_request *request, const sbx_session *session,
                               sbx_slice program, const char *user, bool input) {
  sbx_json_out *json = &request->json;
  sbx_buf_init(&request->buf, MAX_REQUEST);
  sbx_json_out_init(json, &request->buf);
  sbx_json_begin_object(json);
  put_name(json, "AttachStdin");
  sbx_json_put_bool(json, input || session->is_podman);
  put_name(json, "AttachStdout");
  sbx_json_put_bool(json, true);
  put_name(json, "AttachStderr");
  sbx_json_put_bool(json, true);
  if (user == NULL)
    user = session->config->user;
  if (user != NULL) {
    put_name(json, "User");
    put_str(json, user);
  }
  put_name(json, "Cmd");
  sbx_json_begin_array(json);
  put_str(json, "/bin/sh");
  put_str(json, "-c");
  put_program(json, session, program);
  put_str(json, "cloudsandbox");
}

static void begin(sbx_process_request *request, const sbx_session *session, sbx_slice program,
                  bool input) {
  sbx__docker_process_begin(request, session, program, NULL, input);
}

static void put(sbx_process_request *request, sbx_slice word) {
  sbx_json_put_string(&request->json, word);
}

static void put_env(sbx_json_out *json, const sbx_exec_spec *spec, const char *token) {
  sbx_buf line;
  sbx_buf_init(&line, SIZE_MAX / 2);
  sbx_json_put_name(json, sbx_slice_str("Env"));
  sbx_json_begin_array(json);
  for (size_t i = 0; i <= spec->env_count; i++) {
    bool mark = i == spec->env_count;
    if (!mark && sbx_runner_args_is_set_again(spec, i))
      continue;
    sbx_buf_truncate(&line, 0);
    sbx_buf_append_slice(&line, mark ? sbx_slice_str(SBX_RUNNER_MARK) : spec->env[i].name);
    sbx_buf_append_char(&line, '=');
    sbx_buf_append_slice(&line, mark ? sbx_slice_str(token) : spec->env[i].value);
    sbx_json_put_string(json, sbx_buf_slice(&line));
  }
  sbx_json_end_array(json);
  if (line.error != SBX_OK)
    json->buf->error = line.error;
  if (line.ptr != NULL)
    sbx_wipe(line.ptr, line.len);
  sbx_buf_deinit(&line);
}

static void end(sbx_process_request *request, const sbx_exec_spec *spec, const char *token) {
  sbx_json_end_array(&request->json);
  if (spec != NULL)
    put_env(&request->json, spec, token);
  sbx_json_end_object(&request->json);
}

/* Podman closes the outputs when the program ends. */
static bool closes_outputs(const sbx_session *session) {
  return session->is_podman;
}

static sbx_op *start_process(sbx_session *session, const sbx_process_spec *spec, sbx_op_done done,
                             void *arg) {
  sbx_buf url;
  process *p = sbx_steps_new(sizeof *p, session, session->config->loop, done, arg);
  if (p == NULL)
    return NULL;
  p->steps.ending = on_ending;
  p->steps.release = release;
  p->spec = *spec;
  p->spec.request = NULL;
  sbx_frames_init(&p->frames, on_frame, p);
  sbx_buf_init(&p->words, MAX_WORDS);
  sbx_buf_init(&p->input, SIZE_MAX / 2);
  if (session->is_podman) {
    sbx_buf_append_str(&p->input, go);
    sbx_buf_append_slice(&p->input, spec->input);
    p->spec.input = sbx_buf_slice(&p->input);
  }
  if (p->input.error != SBX_OK) {
    sbx_steps_finish_code(&p->steps, p->input.error);
    return &p->steps.op;
  }
  sbx__docker_container_url(&url, session->config, session->id, "/exec");
  /* One that is created twice and started once runs once. */
  sbx__docker_send(&p->steps, "POST", &url, &spec->request->buf, true, on_created);
  return &p->steps.op;
}

static const sbx_process_end *ended(const sbx_op *op) {
  return &((const process *)(const void *)op)->end;
}

static void leave(sbx_op *op) {
  if (op->finished)
    return;
  drop_stream((process *)(void *)op);
  sbx_steps_finish((sbx_steps *)(void *)op, NULL);
}

/* The engine says so in many words, and ends them with these. */
static bool has_no_shell(const sbx_session *session, const sbx_process_end *end, sbx_err *err) {
  if (!end->exited || (end->exit_code != 126 && end->exit_code != 127) ||
      !sbx_remote_exchange_says(end->words, "/bin/sh") ||
      !(sbx_remote_exchange_says(end->words, "no such file") ||
        sbx_remote_exchange_says(end->words, "not found") ||
        sbx_remote_exchange_says(end->words, "permission denied")))
    return false;
  const sbx_config *config = session->config;
  sbx_err_set(err, SBX_EUNSUPPORTED, "docker: the %s ",
              config->attach != NULL ? "container" : "image");
  sbx_err_append_remote(err,
                        sbx_slice_str(config->attach != NULL ? config->attach : config->image));
  sbx_err_append(err, " has no /bin/sh, which every command needs; take an image with a shell");
  err->provider = "docker";
  return true;
}

const sbx_processes sbx__docker_processes = {
    .provider = "docker",
    .json = true,
    .no_room = "raise `diskMb`, or remove what is not needed",
    .begin = begin,
    .word = put,
    .end = end,
    .tells_end = tells_end,
    .closes_outputs = closes_outputs,
    .start = start_process,
    .ended = ended,
    .leave = leave,
    .has_no_shell = has_no_shell,
};
