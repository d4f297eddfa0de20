/* command.c - the request that starts a command, and the line that says that it has ended.
 *
 * A command does not run as the service's own child but under a small wrapper, a script for /bin/sh
 * that is always the same; what differs comes to it as arguments. It gives the command
 *   - a session of its own, so that a signal can reach all of its processes;
 *   - standard input from a file or from nowhere;
 *   - one pipe for both streams when they are to be joined, so that their order is exact;
 * and when the command has ended, it writes a line to both pipes. The service itself tells the end
 * only when both pipes are closed, for which a process in the background may let it wait for ever.
 * All processes of a command are marked by a variable in their environment.
 *
 * Invariant: text of the user is never put into text that a shell reads. */
#include "providers/e2b/command.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "providers/e2b/session.h"

#include <stdio.h>
#include <string.h>

#define MARK "CLOUDSANDBOX_CALL"

enum {
  MAX_ARGUMENT = 100 * 1024, /* the kernel refuses one of 128 KiB */
  MAX_REQUEST = 64 * 1024 * 1024
};

/* $1 whether to join the streams, $2 file with the standard input, $3 file with a long script, or
 * nothing for each; then the command. The files are ours to remove. Messages of this shell itself
 * are nobody's business; its own failures are exit code 126. It sets no variable: one of the same
 * name that the user has exported would reach the command with our value. */
static const char wrapper[] = "exec 3>&2 2>/dev/null\n"
                              "if [ \"$3\" ]; then exec 9<\"$3\" || exit 126; fi\n"
                              "exec <\"${2:-/dev/null}\" || exit 126\n"
                              "[ \"$2$3\" ] && rm -f \"$2\" \"$3\"\n"
                              "(\n"
                              "  if [ \"$1\" ]; then exec 2>&1; else exec 2>&3; fi\n"
                              "  exec 3>&-\n"
                              "  shift 3\n"
                              "  command -v setsid >/dev/null 2>&1 && exec setsid \"$@\"\n"
                              "  exec \"$@\"\n"
                              ")\n"
                              "set -- \"$?\"\n"
                              "printf '\\036%s %d\\n' \"$" MARK "\" \"$1\" >&3\n"
                              "printf '\\036%s %d\\n' \"$" MARK "\" \"$1\"\n"
                              "exit \"$1\"\n";

/* $1 the mark of the processes to kill. Everything marked is killed with its process group, which
 * may hold processes that have cleared their environment; again, until nothing is found. Its
 * variables have names that no sandbox exports: an exported list of many files would be too long
 * for grep's environment. */
static const char killer[] =
    "command -v grep >/dev/null || exit 2\n"
    "_cs_n=0\n"
    "while _cs_found=$(grep -lF \"" MARK "=$1\" /proc/[0-9]*/environ 2>/dev/null)\n"
    "  [ \"$_cs_found\" ]; do\n"
    "  _cs_n=$((_cs_n + 1))\n"
    "  [ $_cs_n -gt 60 ] && exit 1\n"
    "  [ $_cs_n -gt 5 ] && sleep 0.05\n"
    "  for _cs_file in $_cs_found; do\n"
    "    _cs_pid=${_cs_file#/proc/} _cs_pid=${_cs_pid%/environ}\n"
    "    kill -s KILL -- \"-$_cs_pid\" \"$_cs_pid\"\n"
    "  done 2>/dev/null\n"
    "done\n"
    "exit 0\n";

/* ---- the line ------------------------------------------------------------------------------- */

enum { RS = 0x1e, DIGITS_AT = SBX__E2B_TOKEN_LEN + 2 };

static void hand_on(sbx__e2b_trailer *t, sbx_slice bytes) {
  if (bytes.len > 0)
    t->fn(t->arg, bytes);
}

static void let_go(sbx__e2b_trailer *t) {
  size_t len = t->held_len;
  t->held_len = 0;
  hand_on(t, sbx_slice_of(t->held, len));
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
  if (c != '\n') {
    t->held[t->held_len++] = c;
    return;
  }
  for (size_t i = DIGITS_AT; i < t->held_len; i++)
    t->exit_code = t->exit_code * 10 + (t->held[i] - '0');
  t->held_len = 0;
  t->found = true;
}

void sbx__e2b_trailer_feed(sbx__e2b_trailer *t, sbx_slice bytes) {
  while (bytes.len > 0 && !t->found) {
    if (t->held_len == 0) {
      size_t plain = sbx_slice_find(bytes, RS);
      hand_on(t, sbx_slice_of(bytes.ptr, plain));
      bytes = sbx_slice_skip(bytes, plain);
      if (bytes.len == 0)
        return;
    }
    if (!fits(t, bytes.ptr[0])) {
      let_go(t);
      continue;
    }
    take(t, bytes.ptr[0]);
    bytes = sbx_slice_skip(bytes, 1);
  }
  hand_on(t, bytes);
}

void sbx__e2b_trailer_end(sbx__e2b_trailer *t) {
  let_go(t);
}

/* ---- the request ---------------------------------------------------------------------------- */

static void put_str(sbx_json_out *out, const char *text) {
  sbx_json_put_string(out, sbx_slice_str(text));
}

static void put_name(sbx_json_out *out, const char *name) {
  sbx_json_put_name(out, sbx_slice_str(name));
}

/* Opens the request up to the arguments of `script`. */
static void begin(sbx_json_out *out, sbx_buf *buf, const char *script) {
  sbx_buf_init(buf, MAX_REQUEST);
  sbx_json_out_init(out, buf);
  sbx_json_begin_object(out);
  put_name(out, "process");
  sbx_json_begin_object(out);
  put_name(out, "cmd");
  put_str(out, "/bin/sh");
  put_name(out, "args");
  sbx_json_begin_array(out);
  put_str(out, "-c");
  put_str(out, script);
  put_str(out, "cloudsandbox");
}

/* Without `stdin` false the service would keep a pipe open that nobody writes to. */
static void end(sbx_json_out *out) {
  sbx_json_end_object(out);
  put_name(out, "stdin");
  sbx_json_put_bool(out, false);
  sbx_json_end_object(out);
}

static void set_upload(sbx__e2b_upload *upload, const char *token, const char *what,
                       const char *prefix, sbx_slice bytes) {
  snprintf(upload->path, sizeof upload->path, "/tmp/cloudsandbox-%s-%s", token, what);
  upload->prefix = sbx_slice_str(prefix);
  upload->bytes = bytes;
}

/* Code too long for an argument comes on stdin, unless stdin is wanted for something else. */
static int choose_uploads(sbx__e2b_command *command, const sbx_exec_spec *spec, const char *token,
                          sbx_err *err) {
  bool is_long = spec->text.len > MAX_ARGUMENT;
  if (spec->kind == SBX_EXEC_CODE && is_long && spec->stdin_bytes.len > 0)
    return sbx_err_set(err, SBX_ETOOBIG,
                       "code of more than %d bytes cannot be run together with stdin; write the "
                       "code to a file and run that",
                       MAX_ARGUMENT);
  if (spec->kind == SBX_EXEC_CODE && is_long)
    set_upload(&command->uploads[0], token, "in", "", spec->text);
  else if (spec->stdin_bytes.len > 0)
    set_upload(&command->uploads[0], token, "in", "", spec->stdin_bytes);
  /* The script closes the descriptor that it came on, in its first line: line numbers hold. */
  if (spec->kind == SBX_EXEC_SHELL && is_long)
    set_upload(&command->uploads[1], token, "sh", "exec 9<&-; ", spec->text);
  return SBX_OK;
}

static void put_code(sbx_json_out *out, const sbx_exec_spec *spec) {
  bool python = spec->language == SBX_LANG_PYTHON;
  put_str(out, python ? "python3" : "node");
  if (python)
    put_str(out, "-u"); /* else a limit loses what was printed, and streams their order */
  if (spec->text.len > MAX_ARGUMENT) {
    put_str(out, "-");
    return;
  }
  /* Node takes no separate argument that begins with a '-'. */
  sbx_buf joined;
  sbx_buf_init(&joined, MAX_ARGUMENT + 16);
  if (python) {
    put_str(out, "-c");
  } else {
    sbx_buf_append_str(&joined, "--eval=");
  }
  sbx_buf_append_slice(&joined, spec->text);
  if (joined.error != SBX_OK)
    out->buf->error = joined.error;
  sbx_json_put_string(out, sbx_buf_slice(&joined));
  sbx_buf_deinit(&joined);
}

static void put_program(sbx_json_out *out, const sbx_exec_spec *spec) {
  switch (spec->kind) {
  case SBX_EXEC_SHELL:
    put_str(out, "/bin/sh");
    put_str(out, "-c");
    if (spec->text.len > MAX_ARGUMENT) {
      put_str(out, ". /dev/fd/9");
      break;
    }
    put_str(out, "--"); /* the text may begin with a '-' */
    sbx_json_put_string(out, spec->text);
    break;
  case SBX_EXEC_CODE:
    put_code(out, spec);
    break;
  case SBX_EXEC_ARGV:
    for (size_t i = 0; i < spec->argc; i++)
      sbx_json_put_string(out, spec->argv[i]);
    break;
  }
}

/* Whether one of the variables behind number `i` has the same name. */
static bool is_set_again(const sbx_exec_spec *spec, size_t i) {
  sbx_slice name = spec->env[i].name;
  bool again = sbx_slice_eq_str(name, MARK);
  for (size_t k = i + 1; k < spec->env_count; k++)
    again = again || sbx_slice_eq(name, spec->env[k].name);
  return again;
}

static void put_env(sbx_json_out *out, const sbx_exec_spec *spec, const char *token) {
  put_name(out, "envs");
  sbx_json_begin_object(out);
  for (size_t i = 0; i < spec->env_count; i++) {
    if (is_set_again(spec, i))
      continue;
    sbx_json_put_name(out, spec->env[i].name);
    sbx_json_put_string(out, spec->env[i].value);
  }
  put_name(out, MARK);
  put_str(out, token);
  sbx_json_end_object(out);
}

static void put_cwd(sbx_json_out *out, sbx_slice cwd) {
  sbx_buf path;
  sbx_buf_init(&path, MAX_REQUEST);
  sbx__e2b_append_path(&path, cwd);
  if (path.error != SBX_OK)
    out->buf->error = path.error;
  put_name(out, "cwd");
  sbx_json_put_string(out, sbx_buf_slice(&path));
  sbx_buf_deinit(&path);
}

/* The request is JSON: what is not UTF-8 would come out as something else. */
static bool is_text(const sbx_exec_spec *spec) {
  bool ok = sbx_utf8_valid(spec->cwd) &&
            (spec->kind != SBX_EXEC_SHELL || sbx_utf8_valid(spec->text)) &&
            (spec->kind != SBX_EXEC_CODE || sbx_utf8_valid(spec->text));
  for (size_t i = 0; ok && i < spec->argc; i++)
    ok = sbx_utf8_valid(spec->argv[i]);
  for (size_t i = 0; ok && i < spec->env_count; i++)
    ok = sbx_utf8_valid(spec->env[i].value);
  return ok;
}

int sbx__e2b_command_make(sbx__e2b_command *command, const sbx_exec_spec *spec, const char *token,
                          sbx_err *err) {
  sbx_json_out out;
  *command = (sbx__e2b_command){0};
  if (spec->context.len > 0)
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this sandbox has no interpreter, so there are no contexts; use a template "
                       "whose name begins with \"code-interpreter\", or say interpreter: true");
  if (!is_text(spec))
    return sbx_err_set(err, SBX_EINVAL,
                       "a command, its arguments, its directory and its variables must be UTF-8; "
                       "pass other bytes through stdin or a file");
  int rc = choose_uploads(command, spec, token, err);
  if (rc != SBX_OK)
    return rc;
  begin(&out, &command->request, wrapper);
  put_str(&out, spec->merge_streams ? "1" : "");
  put_str(&out, command->uploads[0].path);
  put_str(&out, command->uploads[1].path);
  put_program(&out, spec);
  sbx_json_end_array(&out);
  put_env(&out, spec, token);
  put_cwd(&out, spec->cwd);
  end(&out);
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

int sbx__e2b_command_killer(sbx_buf *request, const char *token) {
  sbx_json_out out;
  begin(&out, request, killer);
  put_str(&out, token);
  sbx_json_end_array(&out);
  put_name(&out, "cwd");
  put_str(&out, "/");
  end(&out);
  return request->error;
}
