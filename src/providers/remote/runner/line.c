/* line.c - writes the lines that run the runner's programs.
 *
 *   exec /bin/sh -c 'PROGRAM' sh TAG WORD... </dev/null
 *
 * A text that is too long for a word comes through a pipe. Not as a here-document: shells put those
 * into a file in /tmp, which may be read-only. */
#include "providers/remote/runner/line.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"

#define MAX_TEXT ((size_t)768 << 20)
/* Bytes of a text, so that its base64 is well below the kernel's 128 KiB for one word. */
#define MAX_WORD ((size_t)48 << 10)
/* Room for what most commands add to a program. */
#define LITTLE_TEXT ((size_t)768)

/* ---- words ---------------------------------------------------------------------------------- */

void sbx_runner_quote(sbx_buf *out, sbx_slice text) {
  sbx_buf_append_char(out, '\'');
  while (text.len > 0) {
    size_t plain = sbx_slice_find(text, '\'');
    sbx_buf_append(out, text.ptr, plain);
    if (plain < text.len)
      sbx_buf_append_str(out, "'\\''");
    text = sbx_slice_skip(text, plain + 1);
  }
  sbx_buf_append_char(out, '\'');
}

/* Our own text, without anything that JSON would escape. */
static void put(const sbx_runner_line *line, const char *text) {
  sbx_buf_append_str(line->buf, text);
}

static void put_end(const sbx_runner_line *line, const char *text) {
  put(line, text);
  put(line, line->json ? "\\n" : "\n");
}

/* A word of the user's, behind a blank. */
static void put_quoted(const sbx_runner_line *line, sbx_slice text) {
  sbx_buf quoted;
  put(line, " ");
  if (!line->json) {
    sbx_runner_quote(line->buf, text);
    return;
  }
  sbx_buf_init(&quoted, MAX_TEXT);
  sbx_runner_quote(&quoted, text);
  sbx_json_escape(line->buf, sbx_buf_slice(&quoted));
  if (quoted.error != SBX_OK && line->buf->error == SBX_OK)
    line->buf->error = quoted.error;
  sbx_buf_deinit(&quoted);
}

/* Behind a blank. */
static void put_number(const sbx_runner_line *line, uint64_t value) {
  char text[21];
  size_t at = sizeof text;
  do {
    text[--at] = (char)('0' + value % 10);
    value /= 10;
  } while (value > 0);
  text[--at] = ' ';
  sbx_buf_append(line->buf, text + at, sizeof text - at);
}

static void put_base64(const sbx_runner_line *line, sbx_slice bytes) {
  put(line, " '");
  sbx_base64_encode(line->buf, bytes);
  put(line, "'");
}

static void put_program(const sbx_runner_line *line, sbx_runner_program program, const char *tag) {
  put(line, "/bin/sh -c ");
  if (line->json) {
    put(line, "'");
    sbx_buf_append_slice(line->buf, sbx_runner_quoted(program));
    put(line, "'");
  } else {
    sbx_runner_quote(line->buf, sbx_runner_text(program));
  }
  put(line, " sh ");
  put(line, tag);
}

static void begin(const sbx_runner_line *line, sbx_runner_program program, const char *tag) {
  sbx_buf_reserve(line->buf, sbx_runner_quoted(program).len + LITTLE_TEXT);
  put(line, "exec ");
  put_program(line, program, tag);
}

static void end(const sbx_runner_line *line) {
  put_end(line, " </dev/null");
}

/* ---- a command ------------------------------------------------------------------------------ */

int sbx_runner_line_words(sbx_buf *out, const sbx_exec_spec *spec) {
  sbx_buf_append_str(out, "exec");
  for (size_t i = 0; i < spec->argc; i++) {
    sbx_buf_append_char(out, ' ');
    sbx_runner_quote(out, spec->argv[i]);
  }
  return out->error;
}

static void put_limit(const sbx_runner_line *line, uint64_t limit_ms) {
  if (limit_ms == SBX_NO_TIMEOUT)
    limit_ms = 0;
  put_number(line, limit_ms / 1000);
  if (limit_ms % 1000 != 0)
    sbx_buf_appendf(line->buf, ".%03u", (unsigned)(limit_ms % 1000));
}

static void put_letters(const sbx_runner_line *line, const sbx_runner_command *command) {
  put(line, " '");
  put(line, command->spec->merge_streams ? "j" : "");
  put(line, command->keep ? "k" : "");
  put(line, command->spec->end_background ? "e" : "");
  put(line, "'");
}

static void put_kind(const sbx_runner_line *line, const sbx_exec_spec *spec) {
  switch (spec->kind) {
  case SBX_EXEC_SHELL:
    put(line, " shell");
    put_quoted(line, spec->shell);
    break;
  case SBX_EXEC_CODE:
    put(line, spec->language == SBX_LANG_PYTHON ? " python ''" : " node ''");
    break;
  case SBX_EXEC_ARGV:
    put(line, " shell sh");
    break;
  }
}

int sbx_runner_line_variables(sbx_buf *out, const sbx_exec_spec *spec) {
  for (size_t i = 0; i < spec->env_count; i++) {
    sbx_buf_append_str(out, "export ");
    sbx_buf_append_slice(out, spec->env[i].name);
    sbx_buf_append_char(out, '=');
    sbx_runner_quote(out, spec->env[i].value);
    sbx_buf_append_char(out, '\n');
  }
  return out->error;
}

static void put_variables(const sbx_runner_line *line, const sbx_runner_command *command) {
  sbx_buf lines;
  if (command->variables == SBX_RUNNER_STORED) {
    put(line, " @");
    return;
  }
  sbx_buf_init(&lines, MAX_TEXT);
  if (command->env)
    sbx_runner_line_variables(&lines, command->spec);
  if (lines.error == SBX_OK && lines.len > MAX_WORD)
    lines.error = SBX_ETOOBIG;
  if (lines.error == SBX_OK)
    put_base64(line, sbx_buf_slice(&lines));
  else if (line->buf->error == SBX_OK)
    line->buf->error = lines.error;
  if (lines.ptr != NULL)
    sbx_wipe(lines.ptr, lines.len); /* they may be secrets */
  sbx_buf_deinit(&lines);
}

static bool is_piped(sbx_runner_source source, sbx_slice bytes) {
  return source == SBX_RUNNER_IN_LINE && bytes.len > MAX_WORD;
}

static void put_source(const sbx_runner_line *line, sbx_runner_source source, sbx_slice bytes,
                       const char *descriptor) {
  if (source == SBX_RUNNER_STORED)
    put(line, " @");
  else if (is_piped(source, bytes))
    put(line, descriptor);
  else
    put_base64(line, bytes);
}

static void put_pipe(const sbx_runner_line *line, sbx_slice bytes) {
  put(line, "printf %s");
  put_base64(line, bytes);
  put(line, " | ");
}

static void put_run(const sbx_runner_line *line, const sbx_runner_command *c, sbx_slice text) {
  const sbx_exec_spec *spec = c->spec;
  put_program(line, SBX_RUNNER_RUN, c->tag);
  put_quoted(line, c->dir);
  put_limit(line, spec->timeout_ms);
  put_number(line, c->share.head);
  put_number(line, c->share.tail);
  put_letters(line, c);
  put_kind(line, spec);
  put_source(line, c->text, text, " 3");
  put_source(line, c->input, spec->stdin_bytes, " 0");
  put_variables(line, c);
  for (size_t i = 0; i < c->left_count; i++) {
    put(line, " ");
    put(line, c->left[i]);
  }
}

void sbx_runner_line_run(const sbx_runner_line *line, const sbx_runner_command *command) {
  const sbx_exec_spec *spec = command->spec;
  sbx_buf words;
  sbx_slice text = spec->text;
  sbx_buf_init(&words, MAX_TEXT);
  if (spec->kind == SBX_EXEC_ARGV && sbx_runner_line_words(&words, spec) == SBX_OK)
    text = sbx_buf_slice(&words);
  if (words.error != SBX_OK && line->buf->error == SBX_OK)
    line->buf->error = words.error;
  bool text_piped = is_piped(command->text, text);
  bool input_piped = is_piped(command->input, spec->stdin_bytes);
  sbx_buf_reserve(line->buf, sbx_runner_quoted(SBX_RUNNER_RUN).len + LITTLE_TEXT);
  if (text_piped)
    put_pipe(line, text);
  if (text_piped && input_piped)
    put(line, "{ exec 3<&0; ");
  if (input_piped)
    put_pipe(line, spec->stdin_bytes);
  if (!text_piped && !input_piped)
    put(line, "exec ");
  put_run(line, command, text);
  if (text_piped && input_piped)
    put_end(line, "; }");
  else
    put_end(line, text_piped ? " 3<&0" : input_piped ? "" : " </dev/null");
  sbx_buf_deinit(&words);
}

/* ---- beside a command ------------------------------------------------------------------------ */

void sbx_runner_line_fetch(const sbx_runner_line *line, const char *tag, const uint64_t at[2],
                           size_t most, bool over) {
  begin(line, SBX_RUNNER_FETCH, tag);
  put_number(line, at[0]);
  put_number(line, at[1]);
  put_number(line, most);
  put_number(line, over ? 1 : 0);
  end(line);
}

void sbx_runner_line_ask(const sbx_runner_line *line, const char *tag, sbx_runner_share share) {
  begin(line, SBX_RUNNER_ASK, tag);
  put_number(line, share.head);
  put_number(line, share.tail);
  end(line);
}

void sbx_runner_line_forget(const sbx_runner_line *line, const char *tag, const char (*left)[33],
                            size_t left_count) {
  begin(line, SBX_RUNNER_FORGET, tag);
  for (size_t i = 0; i < left_count; i++) {
    put(line, " ");
    put(line, left[i]);
  }
  end(line);
}

void sbx_runner_line_stop(const sbx_runner_line *line, const char *tag) {
  begin(line, SBX_RUNNER_STOP, tag);
  end(line);
}

void sbx_runner_line_store(const sbx_runner_line *line, const char *tag, const char *name,
                           size_t at, sbx_slice piece) {
  begin(line, SBX_RUNNER_STORE, tag);
  put(line, " ");
  put(line, name);
  put_number(line, at);
  put_base64(line, piece);
  end(line);
}

void sbx_runner_line_list(const sbx_runner_line *line, const char *tag, sbx_slice dir,
                          size_t most) {
  begin(line, SBX_RUNNER_LIST, tag);
  put_quoted(line, dir);
  put_number(line, most);
  end(line);
}

void sbx_runner_line_get(const sbx_runner_line *line, const char *tag, sbx_slice path,
                         size_t most) {
  begin(line, SBX_RUNNER_GET, tag);
  put_base64(line, path);
  put_number(line, most);
  end(line);
}

void sbx_runner_line_put(const sbx_runner_line *line, const char *tag, sbx_slice path) {
  begin(line, SBX_RUNNER_PUT, tag);
  put_base64(line, path);
  end(line);
}
