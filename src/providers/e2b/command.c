/* command.c - the request that starts a command.
 *
 * A command does not run as the service's own child but under one of the runner's programs, which
 * is always the same; what differs comes to it as arguments. When the command has ended, it writes
 * a line to both outputs. The service itself tells the end only when both are closed, for which a
 * process in the background may let it wait for ever. All processes of a command are marked by a
 * variable in their environment.
 *
 * Invariant: text of the user is never put into text that a shell reads. */
#include "providers/e2b/command.h"

#include "core/alloc.h"
#include "core/err.h"

#include <stdio.h>

enum { MAX_NAMES = 64 * 1024 * 1024 };

/* ---- the request ---------------------------------------------------------------------------- */

static void put_str(sbx_json_out *out, const char *text) {
  sbx_json_put_string(out, sbx_slice_str(text));
}

static void set_upload(sbx__e2b_upload *upload, const char *token, const char *what,
                       const char *prefix, sbx_slice bytes) {
  snprintf(upload->path, sizeof upload->path, "/tmp/cloudsandbox-%s-%s", token, what);
  upload->prefix = sbx_slice_str(prefix);
  upload->bytes = bytes;
}

static void choose_uploads(sbx__e2b_command *command, const sbx_exec_spec *spec,
                           const char *token) {
  /* The script closes the descriptor that it came on, in its first line: line numbers hold. */
  const char *prefix = spec->kind == SBX_EXEC_SHELL ? "exec 9<&-; " : "";
  if (spec->stdin_bytes.len > 0)
    set_upload(&command->uploads[0], token, "in", "", spec->stdin_bytes);
  if (sbx_runner_args_is_long(spec))
    set_upload(&command->uploads[1], token, "text", prefix, spec->text);
}

static void add_name(sbx_buf *names, sbx_slice name) {
  sbx_buf_append_str(names, names->len > 0 ? " " : "");
  sbx_buf_append_slice(names, name);
}

static bool is_of_call(const sbx_exec_spec *spec, sbx_slice name) {
  size_t i = 0;
  while (i < spec->env_count && !sbx_slice_eq(spec->env[i].name, name))
    i++;
  return i < spec->env_count;
}

/* Of the variables of the call and of the sandbox, each once, with blanks between. */
static void put_names(sbx_json_out *out, const sbx_exec_spec *spec, const char *of_sandbox) {
  sbx_slice rest = sbx_slice_str(of_sandbox != NULL ? of_sandbox : "");
  sbx_buf names;
  sbx_buf_init(&names, MAX_NAMES);
  for (size_t i = 0; spec->kind == SBX_EXEC_SHELL && i < spec->env_count; i++) {
    if (!sbx_runner_args_is_set_again(spec, i))
      add_name(&names, spec->env[i].name);
  }
  while (spec->kind == SBX_EXEC_SHELL && rest.len > 0) {
    sbx_slice name = sbx_slice_of(rest.ptr, sbx_slice_find(rest, ' '));
    if (!is_of_call(spec, name))
      add_name(&names, name);
    rest = sbx_slice_skip(rest, name.len + 1);
  }
  if (names.error != SBX_OK)
    out->buf->error = names.error;
  sbx_json_put_string(out, sbx_buf_slice(&names));
  sbx_buf_deinit(&names);
}

static void put_env(sbx_json_out *out, const sbx_exec_spec *spec, const char *token) {
  sbx_json_put_name(out, sbx_slice_str("envs"));
  sbx_json_begin_object(out);
  for (size_t i = 0; i < spec->env_count; i++) {
    if (sbx_runner_args_is_set_again(spec, i))
      continue;
    sbx_json_put_name(out, spec->env[i].name);
    sbx_json_put_string(out, spec->env[i].value);
  }
  sbx_json_put_name(out, sbx_slice_str(SBX_RUNNER_MARK));
  put_str(out, token);
  sbx_json_end_object(out);
}

int sbx__e2b_command_make(sbx__e2b_command *command, const sbx_exec_spec *spec,
                          const sbx_config *config, const char *token, sbx_err *err) {
  sbx_json_out out;
  *command = (sbx__e2b_command){0};
  int rc = sbx_runner_args_check(spec, err);
  if (rc != SBX_OK)
    return rc;
  choose_uploads(command, spec, token);
  sbx__e2b_request_begin(
      &out, &command->request,
      sbx_runner_json(spec->kind == SBX_EXEC_CODE ? SBX_RUNNER_WRAP_CODE : SBX_RUNNER_WRAP_SHELL));
  put_str(&out, spec->merge_streams ? "j" : "");
  put_str(&out, command->uploads[0].path);
  put_str(&out, command->uploads[1].path);
  put_names(&out, spec, config->env_names);
  sbx_runner_args_put(&out, spec);
  sbx_json_end_array(&out);
  put_env(&out, spec, token);
  sbx__e2b_request_end(&out, spec->cwd);
  if (command->request.error == SBX_OK)
    return SBX_OK;
  return sbx_err_set(err, command->request.error,
                     command->request.error == SBX_ETOOBIG
                         ? "the argument list and the environment of the command are too large; "
                           "pass long text through stdin or a file"
                         : NULL);
}

void sbx__e2b_command_free(sbx__e2b_command *command) {
  if (command->request.ptr != NULL)
    sbx_wipe(command->request.ptr, command->request.len); /* variables may be secrets */
  sbx_buf_deinit(&command->request);
}
