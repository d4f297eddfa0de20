/* command.c - the request that starts a command, and the line that says that it has ended.
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
#include "core/enc.h"
#include "core/err.h"

#include <stdio.h>

enum {
  MAX_ARGUMENT = 100 * 1024,     /* the kernel refuses one of 128 KiB */
  MAX_VARIABLE = 128 * 1024 - 8, /* with its name; the program holds it under a longer one, too */
  MAX_NAMES = 64 * 1024 * 1024
};

/* ---- the line ------------------------------------------------------------------------------- */

enum { RS = 0x1e, DIGITS_AT = SBX__E2B_TOKEN_LEN + 2 };

static void hand_on(const sbx__e2b_trailer *t, sbx_slice bytes) {
  if (bytes.len > 0)
    t->fn(t->arg, bytes);
}

void sbx__e2b_trailer_end(sbx__e2b_trailer *t) {
  sbx_slice held = sbx_slice_of(t->held, t->held_len);
  t->held_len = 0;
  hand_on(t, held);
}

/* Whether `c` can stand next in the line. */
static bool fits(const sbx__e2b_trailer *t, char c) {
  size_t at = t->held_len;
  if (at == 0)
    return c == RS;
  if (at <= SBX__E2B_TOKEN_LEN)
    return c == t->token[at - 1];
  if (at < DIGITS_AT)
    return c == ' ';
  return (sbx_is_digit(c) && at < DIGITS_AT + 3) || (c == '\n' && at > DIGITS_AT);
}

static void take(sbx__e2b_trailer *t, char c) {
  t->held[t->held_len++] = c;
  if (c != '\n')
    return;
  t->exit_code = 0;
  for (size_t i = DIGITS_AT; i + 1 < t->held_len; i++)
    t->exit_code = t->exit_code * 10 + (t->held[i] - '0');
  t->held_len = 0;
  t->found = true;
}

void sbx__e2b_trailer_feed(sbx__e2b_trailer *t, sbx_slice bytes) {
  while (bytes.len > 0 && !t->found) {
    size_t plain = t->held_len == 0 ? sbx_slice_find(bytes, RS) : 0;
    hand_on(t, sbx_slice_of(bytes.ptr, plain));
    bytes = sbx_slice_skip(bytes, plain);
    if (bytes.len > 0 && fits(t, bytes.ptr[0])) {
      take(t, bytes.ptr[0]);
      bytes = sbx_slice_skip(bytes, 1);
    } else {
      sbx__e2b_trailer_end(t);
    }
  }
  hand_on(t, bytes);
}

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
  if (spec->kind != SBX_EXEC_ARGV && spec->text.len > MAX_ARGUMENT)
    set_upload(&command->uploads[1], token, "text", prefix, spec->text);
}

static void put_text(sbx_json_out *out, const sbx_exec_spec *spec) {
  sbx_json_put_string(out, spec->text.len > MAX_ARGUMENT ? sbx_slice_str("") : spec->text);
}

static void put_program(sbx_json_out *out, const sbx_exec_spec *spec) {
  switch (spec->kind) {
  case SBX_EXEC_SHELL:
    put_str(out, "shell");
    sbx_json_put_string(out, spec->shell);
    put_text(out, spec);
    break;
  case SBX_EXEC_CODE:
    put_str(out, spec->language == SBX_LANG_PYTHON ? "python" : "node");
    put_text(out, spec);
    break;
  case SBX_EXEC_ARGV:
    put_str(out, "argv");
    for (size_t i = 0; i < spec->argc; i++)
      sbx_json_put_string(out, spec->argv[i]);
    break;
  }
}

/* Whether one of the variables behind number `i` has the same name. */
static bool is_set_again(const sbx_exec_spec *spec, size_t i) {
  sbx_slice name = spec->env[i].name;
  bool again = sbx_slice_eq_str(name, SBX__E2B_MARK);
  for (size_t k = i + 1; k < spec->env_count; k++)
    again = again || sbx_slice_eq(name, spec->env[k].name);
  return again;
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
    if (!is_set_again(spec, i))
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
    if (is_set_again(spec, i))
      continue;
    sbx_json_put_name(out, spec->env[i].name);
    sbx_json_put_string(out, spec->env[i].value);
  }
  sbx_json_put_name(out, sbx_slice_str(SBX__E2B_MARK));
  put_str(out, token);
  sbx_json_end_object(out);
}

/* The request is JSON: what is not UTF-8 would come out as something else. */
static bool is_text(const sbx_exec_spec *spec) {
  bool ok =
      sbx_utf8_valid(spec->cwd) && (spec->kind == SBX_EXEC_ARGV || sbx_utf8_valid(spec->text));
  for (size_t i = 0; ok && i < spec->argc; i++)
    ok = sbx_utf8_valid(spec->argv[i]);
  for (size_t i = 0; ok && i < spec->env_count; i++)
    ok = sbx_utf8_valid(spec->env[i].value);
  return ok;
}

static int check(const sbx_exec_spec *spec, sbx_err *err) {
  if (!is_text(spec))
    return sbx_err_set(err, SBX_EINVAL,
                       "a command, its arguments, its directory and its variables must be UTF-8; "
                       "pass other bytes through stdin or a file");
  for (size_t i = 0; i < spec->env_count; i++) {
    if (spec->env[i].name.len + spec->env[i].value.len <= MAX_VARIABLE)
      continue;
    sbx_err_set(err, SBX_ETOOBIG, "the variable ");
    sbx_err_append_remote(err, spec->env[i].name);
    sbx_err_append(err, " is longer than a process can be given (128 KiB); pass it in a file");
    return SBX_ETOOBIG;
  }
  return SBX_OK;
}

int sbx__e2b_command_make(sbx__e2b_command *command, const sbx_exec_spec *spec,
                          const sbx_config *config, const char *token, sbx_err *err) {
  sbx_json_out out;
  *command = (sbx__e2b_command){0};
  int rc = check(spec, err);
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
  put_program(&out, spec);
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

/* The program puts code into this file, and takes it away unless it is killed. */
int sbx__e2b_command_main(sbx_buf *path, const sbx_exec_spec *spec, const char *token) {
  if (spec->kind != SBX_EXEC_CODE)
    return SBX_OK;
  sbx_buf_append_slice(path, spec->cwd);
  return sbx_buf_appendf(path, "%s" SBX__E2B_OURS "%s.%s", spec->cwd.len > 0 ? "/" : "", token,
                         spec->language == SBX_LANG_PYTHON ? "py" : "js");
}

void sbx__e2b_command_free(sbx__e2b_command *command) {
  if (command->request.ptr != NULL)
    sbx_wipe(command->request.ptr, command->request.len); /* variables may be secrets */
  sbx_buf_deinit(&command->request);
}
