/* line.c - writes the lines that run the runner's programs.
 *
 *   exec /bin/sh -c 'PROGRAM' sh TAG WORD... </dev/null */
#include "providers/remote/runner/line.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/json.h"

#define MAX_TEXT ((size_t)768 << 20)
/* Room for what most commands add to a program. */
#define LITTLE_TEXT ((size_t)768)

/* Strict quoting for sh: the only one there is. */
static void quote(sbx_buf *out, sbx_slice text, bool json) {
  sbx_buf_append_char(out, '\'');
  while (text.len > 0) {
    sbx_slice plain = sbx_slice_of(text.ptr, sbx_slice_find(text, '\''));
    if (json)
      sbx_json_escape(out, plain);
    else
      sbx_buf_append_slice(out, plain);
    if (plain.len < text.len)
      sbx_buf_append_str(out, json ? "'\\\\''" : "'\\''");
    text = sbx_slice_skip(text, plain.len + 1);
  }
  sbx_buf_append_char(out, '\'');
}

/* Our own text, without anything that JSON would escape. */
static void put(const sbx_runner_line *line, const char *text) {
  sbx_buf_append_str(line->buf, text);
}

static void put_base64(const sbx_runner_line *line, sbx_slice bytes) {
  put(line, " '");
  sbx_base64_encode(line->buf, bytes);
  put(line, "'");
}

static void begin(const sbx_runner_line *line, sbx_runner_program program, const char *tag) {
  sbx_buf_reserve(line->buf, sbx_runner_quoted(program).len + LITTLE_TEXT);
  put(line, "exec /bin/sh -c ");
  if (line->json) {
    put(line, "'");
    sbx_buf_append_slice(line->buf, sbx_runner_quoted(program));
    put(line, "'");
  } else {
    quote(line->buf, sbx_runner_text(program), false);
  }
  put(line, " sh ");
  put(line, tag);
}

static void end(const sbx_runner_line *line, const char *words) {
  put(line, words);
  put(line, line->json ? " </dev/null\\n" : " </dev/null\n");
}

void sbx_runner_line_ask(const sbx_runner_line *line, sbx_runner_program program, const char *tag,
                         sbx_slice text, const char *words) {
  begin(line, program, tag);
  if (text.ptr != NULL)
    put_base64(line, text);
  end(line, words);
}

/* ---- a command ------------------------------------------------------------------------------ */

static void make_words(sbx_buf *out, const sbx_exec_spec *spec) {
  sbx_buf_append_str(out, "exec");
  for (size_t i = 0; i < spec->argc; i++) {
    sbx_buf_append_char(out, ' ');
    quote(out, spec->argv[i], false);
  }
}

static void make_variables(sbx_buf *out, const sbx_exec_spec *spec) {
  for (size_t i = 0; i < spec->env_count; i++) {
    sbx_buf_append_str(out, "export ");
    sbx_buf_append_slice(out, spec->env[i].name);
    sbx_buf_append_char(out, '=');
    quote(out, spec->env[i].value, false);
    sbx_buf_append_char(out, '\n');
  }
}

int sbx_runner_command_init(sbx_runner_command *command, const sbx_exec_spec *spec, bool env) {
  sbx_buf *words = &command->made[0], *variables = &command->made[1];
  *command = (sbx_runner_command){.spec = spec, .left = ""};
  sbx_buf_init(words, MAX_TEXT);
  sbx_buf_init(variables, MAX_TEXT);
  if (spec->kind == SBX_EXEC_ARGV)
    make_words(words, spec);
  if (env)
    make_variables(variables, spec);
  command->parts[SBX_RUNNER_TEXT] = spec->kind == SBX_EXEC_ARGV ? sbx_buf_slice(words) : spec->text;
  command->parts[SBX_RUNNER_INPUT] = spec->stdin_bytes;
  command->parts[SBX_RUNNER_VARIABLES] = sbx_buf_slice(variables);
  return words->error != SBX_OK ? words->error : variables->error;
}

void sbx_runner_command_deinit(sbx_runner_command *command) {
  for (size_t i = 0; i < 2; i++) {
    if (command->made[i].ptr != NULL)
      sbx_wipe(command->made[i].ptr, command->made[i].len); /* they may be secrets */
    sbx_buf_deinit(&command->made[i]);
  }
}

static void put_limit(const sbx_runner_line *line, uint64_t limit_ms) {
  if (limit_ms == SBX_NO_TIMEOUT)
    limit_ms = 0;
  sbx_buf_appendf(line->buf, " %llu", (unsigned long long)(limit_ms / 1000));
  if (limit_ms % 1000 != 0)
    sbx_buf_appendf(line->buf, ".%03u", (unsigned)(limit_ms % 1000));
}

static void put_kind(const sbx_runner_line *line, const sbx_exec_spec *spec) {
  if (spec->kind == SBX_EXEC_CODE) {
    put(line, spec->language == SBX_LANG_PYTHON ? " python ''" : " node ''");
  } else if (spec->kind == SBX_EXEC_ARGV) {
    put(line, " shell sh");
  } else {
    put(line, " shell ");
    quote(line->buf, spec->shell, line->json);
  }
}

void sbx_runner_line_run(const sbx_runner_line *line, const sbx_runner_command *command) {
  const sbx_exec_spec *spec = command->spec;
  begin(line, spec->kind == SBX_EXEC_CODE ? SBX_RUNNER_RUN_CODE : SBX_RUNNER_RUN_SHELL,
        command->tag);
  put(line, " ");
  quote(line->buf, command->dir, line->json);
  put_limit(line, spec->timeout_ms);
  sbx_buf_appendf(line->buf, " %zu %zu '%s%s%s'", command->share.head, command->share.tail,
                  spec->merge_streams ? "j" : "", command->keep ? "k" : "",
                  spec->end_background ? "e" : "");
  put_kind(line, spec);
  for (size_t i = 0; i < SBX_RUNNER_PARTS; i++) {
    if (command->stored[i])
      put(line, " @");
    else
      put_base64(line, command->parts[i]);
  }
  end(line, command->left);
}
