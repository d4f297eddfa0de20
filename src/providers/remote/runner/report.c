/* report.c - reads what the runner's programs print; prologue.sh says how it looks.
 *
 * Invariant: what is not whole is an error. */
#include "providers/remote/runner/report.h"

#include "core/enc.h"
#include "core/err.h"

#define MAX_PART ((size_t)768 << 20)

void sbx_runner_report_init(sbx_runner_report *report) {
  *report = (sbx_runner_report){.end = SBX_RUNNER_RAN};
  for (int i = 0; i < 2; i++) {
    sbx_buf_init(&report->head[i], MAX_PART);
    sbx_buf_init(&report->tail[i], MAX_PART);
  }
}

void sbx_runner_report_deinit(sbx_runner_report *report) {
  for (int i = 0; i < 2; i++) {
    sbx_buf_deinit(&report->head[i]);
    sbx_buf_deinit(&report->tail[i]);
  }
}

static sbx_slice next(sbx_slice *rest, char until) {
  size_t end = sbx_slice_find(*rest, until);
  sbx_slice part = sbx_slice_of(rest->ptr, end);
  *rest = sbx_slice_skip(*rest, end + 1);
  return part;
}

bool sbx_runner_take_number(sbx_slice *text, uint64_t most, uint64_t *out) {
  sbx_slice word = next(text, ' ');
  uint64_t value = 0;
  if (word.len == 0 || word.len > 18)
    return false;
  for (size_t i = 0; i < word.len; i++) {
    if (!sbx_is_digit(word.ptr[i]))
      return false;
    value = value * 10 + (uint64_t)(word.ptr[i] - '0');
  }
  *out = value;
  return value <= most;
}

static bool read_end(sbx_slice word, sbx_runner_end *out) {
  static const char *const names[] = {"ran",     "late",  "stopped", "unstored", "nodir",
                                      "noshell", "again", "going",   "absent",   "ended"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    if (!sbx_slice_eq_str(word, names[i]))
      continue;
    *out = (sbx_runner_end)i;
    return true;
  }
  return false;
}

static bool read_first_line(sbx_runner_report *report, sbx_slice line) {
  static const uint64_t most[] = {
      255, 1, UINT64_MAX, UINT64_MAX, SBX_RUNNER_WAS_ENDED, UINT64_MAX, UINT64_MAX};
  uint64_t n[sizeof most / sizeof *most] = {0};
  bool ok = read_end(next(&line, ' '), &report->end);
  for (size_t i = 0; i < sizeof most / sizeof *most; i++)
    ok = ok && sbx_runner_take_number(&line, most[i], &n[i]);
  report->exit_code = (int)n[0];
  report->tree_gone = n[1] == 1;
  report->background = (sbx_runner_background)n[4];
  for (int i = 0; i < 2; i++) {
    report->size[i] = n[2 + i];
    report->lost[i] = n[5 + i];
  }
  return ok;
}

/* What stands before the first line was printed by others. */
static bool find_report(sbx_slice *rest, sbx_slice tag, sbx_runner_report *report) {
  while (rest->len > 0) {
    sbx_slice line = next(rest, '\n');
    if (sbx_slice_starts_with(line, tag) && sbx_slice_eq(next(&line, ' '), tag))
      return read_first_line(report, line);
  }
  return false;
}

static bool read_parts(sbx_runner_report *report, sbx_slice *rest) {
  for (int i = 0; i < 2; i++) {
    if (sbx_base64_decode(&report->head[i], next(rest, '\n')) != SBX_OK ||
        sbx_base64_decode(&report->tail[i], next(rest, '\n')) != SBX_OK)
      return false;
    if (report->head[i].len + report->tail[i].len > report->size[i])
      return false;
  }
  return true;
}

int sbx_runner_report_read(sbx_runner_report *report, sbx_slice printed, const char *tag,
                           const char *provider, sbx_err *err) {
  sbx_slice name = sbx_slice_str(tag), rest = printed;
  bool found = find_report(&rest, name, report);
  if (found && read_parts(report, &rest)) {
    sbx_slice last = next(&rest, '\n');
    if (sbx_slice_eq(next(&last, ' '), name) && sbx_slice_eq_str(last, "end"))
      return SBX_OK;
  }
  for (int i = 0; i < 2; i++) {
    if (report->head[i].error == SBX_ENOMEM || report->tail[i].error == SBX_ENOMEM)
      return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  sbx_err_set(err, SBX_EPROTO, "%s: %s", provider,
              found ? "the report of the command is cut off"
                    : "the sandbox does not say how the command ended");
  if (!found && printed.len > 0) {
    sbx_err_append(err, ": ");
    sbx_err_append_remote(err, printed);
  }
  return SBX_EPROTO;
}
