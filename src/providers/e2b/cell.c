/* cell.c - the reply to one piece of code, line by line.
 *
 * Each line is a JSON object with a type: output, a result to show, the error that ended the code,
 * the end. Python writes two things that are no JSON: NaN and Infinity, which become null, and half
 * surrogate pairs, which become U+FFFD.
 *
 * Invariant: results and the error are kept as the bytes that came, once they were found to be
 * JSON. */
#include "providers/e2b/cell.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"

#include <string.h>

enum { MAX_ERROR = 1024 * 1024 };
#define MAX_RESULTS (SBX_OUTPUT_DETAILS_MAX / 2)
/* Of one line: a chart has two for each of its points. */
enum { MAX_VALUES = 100 * 1000 };

void sbx__e2b_cell_init(sbx__e2b_cell *cell, sbx_output *out) {
  *cell = (sbx__e2b_cell){.out = out};
  sbx_buf_init(&cell->results, MAX_RESULTS);
  sbx_buf_init(&cell->error, MAX_ERROR);
}

void sbx__e2b_cell_deinit(sbx__e2b_cell *cell) {
  sbx_buf_deinit(&cell->results);
  sbx_buf_deinit(&cell->error);
}

/* ---- what Python takes for JSON -------------------------------------------------------------- */

/* Length of NaN, Infinity or -Infinity at the start of `s`, else 0. */
static size_t no_number(sbx_slice s) {
  static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (sbx_slice_starts_with(s, sbx_slice_str(words[i])))
      return strlen(words[i]);
  }
  return 0;
}

/* Whether an escape \\uXXXX with X from `low` to `high` at its second digit, behind a 'd', stands
 * at the start of `s`: the two kinds of surrogates. */
static bool is_surrogate(sbx_slice s, int low, int high) {
  if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u' || sbx_hex_value(s.ptr[2]) != 0xd)
    return false;
  int digit = sbx_hex_value(s.ptr[3]);
  return digit >= low && digit <= high;
}

/* Copies the escape at the start of `s`, and gives its length: of a pair, of half a one that is
 * replaced, or of any other. */
static size_t copy_escape(sbx_buf *out, sbx_slice s) {
  bool first = is_surrogate(s, 8, 0xb);
  size_t len = s.len < 2 ? s.len : 2;
  if (first && is_surrogate(sbx_slice_skip(s, 6), 0xc, 0xf))
    len = 12;
  else if (first || is_surrogate(s, 0xc, 0xf))
    len = 6;
  if (len == 6)
    sbx_buf_append_str(out, "\\ufffd");
  else
    sbx_buf_append(out, s.ptr, len);
  return len;
}

static int repair(sbx_buf *out, sbx_slice line) {
  bool in_string = false;
  while (line.len > 0) {
    size_t len = in_string ? 0 : no_number(line);
    if (len > 0) {
      sbx_buf_append_str(out, "null");
    } else if (in_string && line.ptr[0] == '\\') {
      len = copy_escape(out, line);
    } else {
      in_string = in_string != (line.ptr[0] == '"');
      len = 1;
      sbx_buf_append_char(out, line.ptr[0]);
    }
    line = sbx_slice_skip(line, len);
  }
  return out->error;
}

/* ---- text ----------------------------------------------------------------------------------- */

static int add_output(sbx__e2b_cell *cell, sbx_stream stream, sbx_slice text) {
  /* Out of memory loses the bytes, which are then counted as dropped. */
  sbx_output_add(cell->out, stream, text);
  return SBX_OK;
}

/* Length of a terminal's control sequence at the start of `s`, else 0: ESC [ parameters letter. */
static size_t control_sequence(sbx_slice s) {
  if (s.len < 2 || s.ptr[0] != '\x1b' || s.ptr[1] != '[')
    return 0;
  size_t n = 2;
  while (n < s.len && s.ptr[n] >= 0x20 && s.ptr[n] < 0x40)
    n++;
  return n < s.len ? n + 1 : 0;
}

/* The traceback is coloured for a terminal; a model reads it better without. */
static void add_plain(sbx__e2b_cell *cell, sbx_slice text) {
  while (text.len > 0) {
    size_t skipped = control_sequence(text);
    text = sbx_slice_skip(text, skipped);
    if (skipped > 0)
      continue;
    size_t plain = 1 + sbx_slice_find(sbx_slice_skip(text, 1), '\x1b');
    add_output(cell, SBX_STDERR, sbx_slice_of(text.ptr, plain));
    text = sbx_slice_skip(text, plain);
  }
}

/* ---- lines ---------------------------------------------------------------------------------- */

static int take_text(sbx__e2b_cell *cell, sbx_stream stream, const sbx_json *line, sbx_err *err) {
  sbx_slice text;
  if (!sbx_json_string(sbx_json_get(line, "text"), &text))
    return sbx_err_set(err, SBX_EPROTO, "e2b: code: output without its text");
  return add_output(cell, stream, text);
}

/* What does not fit is counted; the code is not to fail for it. */
static int take_result(sbx__e2b_cell *cell, sbx_slice raw, sbx_err *err) {
  size_t len = cell->results.len;
  if (len > 0)
    sbx_buf_append_char(&cell->results, ',');
  int rc = sbx_buf_append_slice(&cell->results, raw);
  if (rc == SBX_OK)
    return SBX_OK;
  sbx_buf_truncate(&cell->results, len);
  cell->results.error = SBX_OK;
  if (rc != SBX_ETOOBIG)
    return sbx_err_set(err, rc, NULL);
  cell->dropped++;
  return SBX_OK;
}

static void put_member(sbx_json_out *out, const sbx_json *line, const char *name) {
  sbx_slice text = {NULL, 0};
  sbx_json_string(sbx_json_get(line, name), &text);
  sbx_json_put_text(out, name, text);
}

/* Errors of the service itself have no traceback. */
static bool is_of_service(sbx_slice name, sbx_slice traceback) {
  static const char *const names[] = {"WebSocketError", "UnexpectedEndOfExecution",
                                      "ExecutionAborted"};
  bool found = false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    found = found || sbx_slice_eq_str(name, names[i]);
  return found && traceback.len == 0;
}

static int take_error(sbx__e2b_cell *cell, const sbx_json *line, sbx_err *err) {
  sbx_slice name = {NULL, 0}, value = {NULL, 0}, traceback = {NULL, 0};
  sbx_json_string(sbx_json_get(line, "name"), &name);
  sbx_json_string(sbx_json_get(line, "value"), &value);
  sbx_json_string(sbx_json_get(line, "traceback"), &traceback);
  cell->failed = true;
  cell->kernel_lost = cell->kernel_lost || is_of_service(name, traceback);
  if (traceback.len > 0) {
    add_plain(cell, traceback);
  } else {
    add_output(cell, SBX_STDERR, name);
    add_output(cell, SBX_STDERR, sbx_slice_str(": "));
    add_plain(cell, value);
  }
  add_output(cell, SBX_STDERR, sbx_slice_str("\n"));
  sbx_json_out out;
  sbx_buf_truncate(&cell->error, 0);
  sbx_json_out_init(&out, &cell->error);
  sbx_json_begin_object(&out);
  put_member(&out, line, "name");
  put_member(&out, line, "value");
  put_member(&out, line, "traceback");
  sbx_json_end_object(&out);
  int rc = cell->error.error;
  if (rc == SBX_ETOOBIG)
    sbx_buf_deinit(&cell->error); /* too much to keep; the output has it */
  return rc == SBX_ENOMEM ? sbx_err_set(err, rc, NULL) : SBX_OK;
}

/* Types that are not known here say nothing about the code. */
static int take(sbx__e2b_cell *cell, const sbx_json *line, sbx_slice raw, sbx_err *err) {
  sbx_slice type;
  if (!sbx_json_string(sbx_json_get(line, "type"), &type))
    return sbx_err_set(err, SBX_EPROTO, "e2b: code: a line of the reply has no type");
  if (sbx_slice_eq_str(type, "stdout"))
    return take_text(cell, SBX_STDOUT, line, err);
  if (sbx_slice_eq_str(type, "stderr"))
    return take_text(cell, SBX_STDERR, line, err);
  if (sbx_slice_eq_str(type, "result"))
    return take_result(cell, raw, err);
  if (sbx_slice_eq_str(type, "error"))
    return take_error(cell, line, err);
  if (sbx_slice_eq_str(type, "end_of_execution"))
    cell->ended = true;
  return SBX_OK;
}

int sbx__e2b_cell_line(sbx__e2b_cell *cell, sbx_slice line, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_buf repaired;
  sbx_err why;
  sbx_buf_init(&repaired, SIZE_MAX / 2);
  int rc = sbx_json_parse_max(&doc, line, MAX_VALUES, &why);
  if (rc == SBX_EPROTO) {
    rc = repair(&repaired, line);
    if (rc != SBX_OK)
      sbx_err_set(&why, rc, NULL);
    else
      rc = sbx_json_parse_max(&doc, line = sbx_buf_slice(&repaired), MAX_VALUES, &why);
  }
  if (rc == SBX_OK)
    rc = take(cell, sbx_json_root(doc), line, err);
  else if (rc == SBX_EPROTO)
    sbx_err_set(err, rc, "e2b: code: a line of the reply is not JSON");
  else
    sbx_err_copy(err, &why);
  sbx_json_free(doc, false);
  sbx_buf_deinit(&repaired);
  return rc;
}

int sbx__e2b_cell_finish(sbx__e2b_cell *cell) {
  sbx_buf *details = sbx_output_details(cell->out);
  sbx_buf_append_str(details, "{\"results\":[");
  sbx_buf_append_slice(details, sbx_buf_slice(&cell->results));
  sbx_buf_appendf(details, "],\"droppedResults\":%zu", cell->dropped);
  if (cell->error.len > 0) {
    sbx_buf_append_str(details, ",\"error\":");
    sbx_buf_append_slice(details, sbx_buf_slice(&cell->error));
  }
  return sbx_buf_append_str(details, "}");
}
