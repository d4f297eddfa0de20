/* spec.c - checks and copies of what a call is given.
 *
 * Invariant: whatever passes here can be sent by every provider without a look at it: no NUL in
 * text, names that every shell accepts, limits that fit. A refusal comes before anything is created
 * and says what to write instead. */
#include "sandbox/spec.h"

#include "core/alloc.h"
#include "core/err.h"
#include "providers/provider.h"

#include <string.h>

/* Names longer than this are cut in messages. */
enum { SHOWN_NAME_MAX = 64 };
/* What Linux takes of one argument, or of one variable with its name, the NUL included. */
enum { ITEM_MAX = 128 * 1024 };

static int check_no_nul(sbx_slice text, int code, const char *what, const char *instead,
                        sbx_err *err) {
  if (!sbx_slice_has_nul(text))
    return SBX_OK;
  return sbx_err_set(err, code, "%s has a NUL byte at offset %zu; %s", what,
                     sbx_slice_find(text, '\0'), instead);
}

/* "~" and "~/x" are the home of the sandbox's user, which the provider knows. Another user's home
 * is none of ours, and a folder named "~other" is hardly ever meant. */
static int check_home(sbx_slice path, sbx_err *err) {
  if (path.len < 2 || path.ptr[0] != '~' || path.ptr[1] == '/')
    return SBX_OK;
  if (path.len > SHOWN_NAME_MAX)
    path.len = SHOWN_NAME_MAX;
  sbx_err_set(err, SBX_EINVAL, "only \"~\" and \"~/...\" are a home directory, not \"");
  sbx_err_append_remote(err, path);
  sbx_err_append(err, "\"; for a name that begins with ~ write \"./~...\"");
  return SBX_EINVAL;
}

static int check_file_name(sbx_slice path, const char *what, sbx_err *err) {
  int rc = check_no_nul(path, SBX_EPATH, what, "a file name cannot hold one", err);
  return rc == SBX_OK ? check_home(path, err) : rc;
}

int sbx__check_path(sbx_slice path, sbx_err *err) {
  if (path.len == 0)
    return sbx_err_set(err, SBX_EINVAL,
                       "the path is empty; give the name of a file, such as \"out.txt\"");
  return check_file_name(path, "the path", err);
}

/* ---- the parts of an exec ---- */

static int check_text(const sbx_exec_spec *spec, sbx_err *err) {
  switch (spec->kind) {
  case SBX_EXEC_SHELL:
    return check_no_nul(spec->text, SBX_EINVAL, "the command",
                        "pass such bytes through stdin or a file", err);
  case SBX_EXEC_CODE:
    if (spec->language != SBX_LANG_PYTHON && spec->language != SBX_LANG_NODE)
      return sbx_err_set(err, SBX_EINVAL, "no such language: %d; use python or node",
                         (int)spec->language);
    return check_no_nul(spec->text, SBX_EINVAL, "the code",
                        "write it as an escape sequence of the language", err);
  case SBX_EXEC_ARGV:
    if (spec->argc == 0 || spec->argv == NULL || spec->argv[0].len == 0)
      return sbx_err_set(err, SBX_EINVAL,
                         "the argument list has no program; give its name as the first item");
    for (size_t i = 0; i < spec->argc; i++) {
      if (sbx_slice_has_nul(spec->argv[i]))
        return sbx_err_set(err, SBX_EINVAL,
                           "argument %zu has a NUL byte; pass such bytes through stdin or a file",
                           i);
      if (spec->argv[i].len >= ITEM_MAX)
        return sbx_err_set(err, SBX_ETOOBIG,
                           "argument %zu has %zu bytes, and the system takes at most %d; pass it "
                           "through stdin or a file",
                           i, spec->argv[i].len, ITEM_MAX - 1);
    }
    return SBX_OK;
  }
  return sbx_err_set(err, SBX_EINVAL, "no such kind of command: %d; use shell, code or argv",
                     (int)spec->kind);
}

static int refuse_size(sbx_slice name, size_t size, sbx_err *err) {
  sbx_err_set(err, SBX_ETOOBIG, "the environment variable ");
  sbx_err_append_remote(err, name);
  sbx_err_append(err,
                 " has %zu bytes with its name, and the system takes at most %d; pass such a value "
                 "through stdin or a file",
                 size, ITEM_MAX - 2);
  return SBX_ETOOBIG;
}

/* Values may be secrets: only names are shown. */
static int check_env(const sbx_exec_spec *spec, sbx_err *err) {
  if (spec->env_count > 0 && spec->env == NULL)
    return sbx_err_set(err, SBX_EINVAL, "the list of environment variables is missing");
  for (size_t i = 0; i < spec->env_count; i++) {
    sbx_slice name = spec->env[i].name;
    size_t size = name.len + spec->env[i].value.len;
    bool name_ok = sbx_provider_is_env_name(name);
    bool fits = size <= ITEM_MAX - 2; /* '=' and the NUL */
    if (name_ok && fits && !sbx_slice_has_nul(spec->env[i].value))
      continue;
    if (name.len > SHOWN_NAME_MAX)
      name.len = SHOWN_NAME_MAX;
    if (name_ok && !fits)
      return refuse_size(name, size, err);
    sbx_err_set(err, SBX_EINVAL,
                name_ok ? "the value of the environment variable "
                        : "not a name of an environment variable: \"");
    sbx_err_append_remote(err, name);
    sbx_err_append(err, name_ok ? " has a NUL byte; encode it, for example as base64"
                                : "\"; use letters, digits and _, and no digit first");
    return SBX_EINVAL;
  }
  return SBX_OK;
}

static int check_limits(const sbx_exec_spec *spec, sbx_err *err) {
  if (spec->timeout_ms > SBX__MAX_TIMEOUT_MS && spec->timeout_ms != SBX_NO_TIMEOUT)
    return sbx_err_set(err, SBX_EINVAL,
                       "a time limit of %llu ms is too long; give at most %d ms, or no limit",
                       (unsigned long long)spec->timeout_ms, SBX__MAX_TIMEOUT_MS);
  if (spec->max_output_bytes > SBX__MAX_OUTPUT_BYTES)
    return sbx_err_set(err, SBX_EINVAL,
                       "an output limit of %zu bytes is too large; give at most %zu, or write the "
                       "output to a file",
                       spec->max_output_bytes, SBX__MAX_OUTPUT_BYTES);
  if (spec->truncate != SBX_KEEP_HEAD && spec->truncate != SBX_KEEP_HEAD_AND_TAIL)
    return sbx_err_set(err, SBX_EINVAL,
                       "no such way to cut output: %d; keep the head, or head "
                       "and tail",
                       (int)spec->truncate);
  return SBX_OK;
}

int sbx__check_shell(sbx_slice shell, sbx_err *err) {
  if (shell.len == 0 || sbx_slice_eq_str(shell, "bash") || sbx_slice_eq_str(shell, "sh"))
    return SBX_OK;
  if (shell.ptr[0] != '/' || sbx_slice_has_nul(shell))
    return sbx_err_set(err, SBX_EINVAL, "shell must be \"bash\", \"sh\" or an absolute path");
  return SBX_OK;
}

int sbx__check_spec(const sbx_exec_spec *spec, uint32_t caps, sbx_err *err) {
  int rc = check_text(spec, err);
  if (rc == SBX_OK)
    rc = check_env(spec, err);
  if (rc == SBX_OK)
    rc = check_limits(spec, err);
  if (rc == SBX_OK)
    rc = check_file_name(spec->cwd, "the working directory", err);
  if (rc == SBX_OK)
    rc = sbx__check_shell(spec->shell, err);
  if (rc != SBX_OK)
    return rc;
  if (spec->context.len > 0 && spec->kind != SBX_EXEC_CODE)
    return sbx_err_set(err, SBX_EINVAL, "only code runs in a context; leave the context out");
  if (spec->context.len > 0 && !(caps & SBX_CAP_CONTEXTS))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this sandbox has no interpreter that keeps its state; leave the context "
                       "out, and keep what has to last in files, or make a sandbox that has one "
                       "(`interpreter: true`)");
  if (spec->cwd.len > 0 && !(caps & SBX_CAP_CWD))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this provider cannot set a working directory; use cd in the command");
  if (spec->stdin_bytes.len > 0 && !(caps & SBX_CAP_STDIN))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this provider has no stdin; write a file and redirect from it");
  if (spec->open_stdin && !(caps & SBX_CAP_SPAWN))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this sandbox cannot keep the standard input of a command open, nor send it "
                       "signals; give all input with the command, or write a file and redirect "
                       "from it");
  if ((spec->tty.columns == 0) != (spec->tty.rows == 0))
    return sbx_err_set(err, SBX_EINVAL, "a terminal has at least one column and one row");
  if (spec->tty.columns > 0 && !spec->open_stdin)
    return sbx_err_set(err, SBX_EINVAL,
                       "a command with a terminal has its standard input open (`open_stdin`)");
  if (spec->tty.columns > 0 && !(caps & SBX_CAP_TTY))
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       "this sandbox has no terminals; start the command without one");
  if (spec->open_stdin && spec->stdin_bytes.len > 0)
    return sbx_err_set(
        err, SBX_EINVAL,
        "standard input that stays open takes no bytes beforehand; write them to it");
  return SBX_OK;
}

/* ---- copy ---- */

static bool add_size(size_t *total, size_t len) {
  return sbx_size_add(total, *total, len);
}

/* Items of the arrays come first, so that they are aligned; then the bytes. */
static bool block_size(size_t *total, const sbx_exec_spec *spec) {
  size_t argv_size, env_size;
  *total = 0;
  bool fits = sbx_size_mul(&argv_size, spec->argc, sizeof *spec->argv) &&
              sbx_size_mul(&env_size, spec->env_count, sizeof *spec->env) &&
              add_size(total, argv_size) && add_size(total, env_size) &&
              add_size(total, spec->text.len) && add_size(total, spec->cwd.len) &&
              add_size(total, spec->stdin_bytes.len) && add_size(total, spec->context.len) &&
              add_size(total, spec->shell.len);
  for (size_t i = 0; fits && i < spec->argc; i++)
    fits = add_size(total, spec->argv[i].len);
  for (size_t i = 0; fits && i < spec->env_count; i++)
    fits = add_size(total, spec->env[i].name.len) && add_size(total, spec->env[i].value.len);
  return fits;
}

static sbx_slice put_bytes(char **at, sbx_slice from) {
  if (from.len == 0)
    return sbx_slice_of(NULL, 0);
  sbx_slice to = {memcpy(*at, from.ptr, from.len), from.len};
  *at += from.len;
  return to;
}

int sbx__copy_spec(sbx_exec_spec *to, char **block, const sbx_exec_spec *from) {
  size_t size;
  if (!block_size(&size, from) || (*block = sbx_malloc(size)) == NULL)
    return SBX_ENOMEM;
  sbx_slice *argv = (sbx_slice *)(void *)*block;
  sbx_env_var *env = (sbx_env_var *)(void *)(argv + from->argc);
  char *at = (char *)(env + from->env_count);
  for (size_t i = 0; i < from->argc; i++)
    argv[i] = put_bytes(&at, from->argv[i]);
  for (size_t i = 0; i < from->env_count; i++) {
    env[i].name = put_bytes(&at, from->env[i].name);
    env[i].value = put_bytes(&at, from->env[i].value);
  }
  *to = *from;
  to->argv = argv;
  to->env = env;
  to->text = put_bytes(&at, from->text);
  to->cwd = put_bytes(&at, from->cwd);
  to->stdin_bytes = put_bytes(&at, from->stdin_bytes);
  to->context = put_bytes(&at, from->context);
  to->shell = put_bytes(&at, from->shell);
  return SBX_OK;
}
