/* args.c - a command as arguments of the programs for wires that stream.
 *
 * Invariant: text of the user is an argument of its own, never part of a program. */
#include "providers/remote/runner/args.h"

#include "core/enc.h"
#include "core/err.h"
#include "providers/provider.h"

enum {
  MAX_VARIABLE = 128 * 1024 - 8
}; /* with its name; a program holds it under a longer one, too */

bool sbx_runner_args_is_long(const sbx_exec_spec *spec) {
  return spec->kind != SBX_EXEC_ARGV && spec->text.len > SBX_RUNNER_ARG_MAX;
}

void sbx_runner_args_each(const sbx_exec_spec *spec, bool elsewhere,
                          void (*fn)(void *arg, sbx_slice word), void *arg) {
  sbx_slice text = elsewhere ? sbx_slice_str("") : spec->text;
  switch (spec->kind) {
  case SBX_EXEC_SHELL:
    fn(arg, sbx_slice_str("shell"));
    fn(arg, spec->shell);
    fn(arg, text);
    break;
  case SBX_EXEC_CODE:
    fn(arg, sbx_slice_str(spec->language == SBX_LANG_PYTHON ? "python" : "node"));
    fn(arg, text);
    break;
  case SBX_EXEC_ARGV:
    fn(arg, sbx_slice_str("argv"));
    for (size_t i = 0; i < spec->argc; i++)
      fn(arg, spec->argv[i]);
    break;
  }
}

static void put_word(void *out, sbx_slice word) {
  sbx_json_put_string(out, word);
}

void sbx_runner_args_put(sbx_json_out *out, const sbx_exec_spec *spec) {
  sbx_runner_args_each(spec, sbx_runner_args_is_long(spec), put_word, out);
}

bool sbx_runner_args_is_set_again(const sbx_exec_spec *spec, size_t i) {
  sbx_slice name = spec->env[i].name;
  bool again = sbx_slice_eq_str(name, SBX_RUNNER_MARK);
  for (size_t k = i + 1; k < spec->env_count; k++)
    again = again || sbx_slice_eq(name, spec->env[k].name);
  return again;
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

int sbx_runner_args_check(const sbx_exec_spec *spec, sbx_err *err) {
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

void sbx_runner_no_shell(sbx_err *err, const char *provider, const char *name) {
  sbx_err_set(err, SBX_EINVAL, "%s: there is no shell ", provider);
  sbx_err_append_remote(err, sbx_slice_str(name));
  sbx_err_append(err, " in the sandbox; install it, or leave `shell` out");
  err->provider = provider;
}

void sbx_runner_no_directory(sbx_err *err, const char *provider, const char *name) {
  sbx_err_set(err, SBX_EINVAL, "%s: cannot run in the working directory \"", provider);
  sbx_err_append_remote(err, sbx_slice_str(name));
  sbx_err_append(err, "\": it is not there, is no directory, or must not be entered");
  sbx_err_append(err, SBX__CWD_ADVICE);
  err->provider = provider;
}
