/* Tests of the runner's text: the lines that run its programs, and reading what these print. The
 * programs themselves are tested in test/runner/. */
#include "providers/remote/runner/line.h"
#include "providers/remote/runner/report.h"
#include "providers/remote/runner/text.h"

#include "core/enc.h"
#include "core/err.h"
#include "core/json.h"
#include "support/core_test.h"

#define TAG "0123456789abcdef0123456789abcdef"
#define NOTHING " 0 0 0 0 0 0 0\n\n\n\n\n" TAG " end\n"
#define REPORT "a shell's greeting\n\n" TAG " ran 7 0 5 3 1 0 9\naGVsbG8=\n\nZXJy\n\n" TAG " end\n"

/* ---- lines ---- */

static const sbx_slice argv[] = {BYTES("a'canary"), BYTES("")};
static const sbx_env_var env[] = {{BYTES("NAME"), BYTES("canary")}};

static const sbx_exec_spec specs[] = {
    {.kind = SBX_EXEC_SHELL, .text = BYTES("echo 'canary'"), .timeout_ms = 1500},
    {.kind = SBX_EXEC_CODE,
     .text = BYTES("canary"),
     .language = SBX_LANG_NODE,
     .stdin_bytes = BYTES("canary\0"),
     .env = env,
     .env_count = 1,
     .end_background = true,
     .timeout_ms = SBX_NO_TIMEOUT},
    {.kind = SBX_EXEC_ARGV, .argv = argv, .argc = 2, .timeout_ms = 30000, .merge_streams = true},
};

/* The line of a command, as the sandbox sees it. */
static sbx_slice line_of(sbx_buf *buf, const sbx_runner_command *command, bool json,
                         sbx_json_doc **doc) {
  sbx_slice text;
  sbx_err err;
  sbx_buf_init(buf, SIZE_MAX);
  sbx_runner_line line = {.buf = buf, .json = json};
  *doc = NULL;
  if (!json) {
    sbx_runner_line_run(&line, command);
    assert_int_equal(buf->error, SBX_OK);
    return sbx_buf_slice(buf);
  }
  sbx_buf_append_char(buf, '"');
  sbx_runner_line_run(&line, command);
  assert_int_equal(sbx_buf_append_char(buf, '"'), SBX_OK);
  assert_int_equal(sbx_json_parse(doc, sbx_buf_slice(buf), &err), SBX_OK);
  assert_true(sbx_json_string(sbx_json_root(*doc), &text));
  return text;
}

static bool says(sbx_slice text, const char *wanted) {
  size_t len = strlen(wanted);
  for (; text.len >= len; text = sbx_slice_skip(text, 1)) {
    if (memcmp(text.ptr, wanted, len) == 0)
      return true;
  }
  return false;
}

static void test_programs_are_escaped_for_json(void **state) {
  (void)state;
  static const sbx_runner_program alone[] = {
      SBX_RUNNER_WRAP_SHELL, SBX_RUNNER_WRAP_CODE, SBX_RUNNER_BOUND_SHELL, SBX_RUNNER_BOUND_CODE,
      SBX_RUNNER_KILL,       SBX_RUNNER_KERNEL,    SBX_RUNNER_SAVE,        SBX_RUNNER_LOAD};
  for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++) {
    sbx_slice text = sbx_runner_text(alone[i]);
    sbx_buf escaped;
    sbx_buf_init(&escaped, SIZE_MAX);
    sbx_json_escape(&escaped, text);
    assert_true(text.len > 0);
    assert_true(sbx_slice_eq(sbx_buf_slice(&escaped), sbx_runner_json(alone[i])));
    sbx_buf_deinit(&escaped);
  }
}

static void test_programs_are_quoted_for_a_shell_in_json(void **state) {
  (void)state;
  for (int i = SBX_RUNNER_WRAP_SHELL; i <= SBX_RUNNER_LIVE; i++) {
    sbx_slice text = sbx_runner_text((sbx_runner_program)i);
    sbx_buf quoted, escaped;
    sbx_buf_init(&quoted, SIZE_MAX);
    sbx_buf_init(&escaped, SIZE_MAX);
    assert_true(text.len > 0);
    for (size_t at = 0; at < text.len; at++) {
      if (text.ptr[at] == '\'')
        sbx_buf_append_str(&quoted, "'\\''");
      else
        sbx_buf_append_char(&quoted, text.ptr[at]);
    }
    sbx_json_escape(&escaped, sbx_buf_slice(&quoted));
    assert_true(sbx_slice_eq(sbx_buf_slice(&escaped), sbx_runner_quoted((sbx_runner_program)i)));
    sbx_buf_deinit(&escaped);
    sbx_buf_deinit(&quoted);
  }
}

static sbx_runner_command command_of(const sbx_exec_spec *spec) {
  sbx_runner_command command;
  assert_int_equal(sbx_runner_command_init(&command, spec, true), SBX_OK);
  command.tag = TAG;
  command.dir = LIT("/it's \"here\"");
  command.share = (sbx_runner_share){10, 20};
  return command;
}

static void test_text_of_the_user_is_not_in_the_program(void **state) {
  (void)state;
  for (size_t i = 0; i < COUNT(specs); i++) {
    sbx_runner_command command = command_of(&specs[i]);
    sbx_buf buf;
    sbx_json_doc *doc;
    sbx_slice text = line_of(&buf, &command, true, &doc);
    assert_false(says(text, "canary"));
    assert_true(says(text, TAG " '/it'\\''s \"here\"' "));
    assert_true(says(text, i == 0   ? " 10 20 '' shell '' "
                           : i == 1 ? " 10 20 'e' node '' "
                                    : " 10 20 'j' shell sh "));
    sbx_json_free(doc, false);
    sbx_buf_deinit(&buf);
    sbx_runner_command_deinit(&command);
  }
}

/* Its escapes are made by the build, and not by the writer of JSON. */
static void test_a_line_is_the_same_in_json_or_not(void **state) {
  static char large[60000];
  const sbx_exec_spec much = {.kind = SBX_EXEC_SHELL,
                              .shell = BYTES("/bin/it's \"a\\shell\""),
                              .text = sbx_slice_of(large, sizeof large),
                              .stdin_bytes = sbx_slice_of(large, sizeof large),
                              .timeout_ms = 1};
  (void)state;
  memset(large, 'x', sizeof large);
  for (size_t i = 0; i <= COUNT(specs); i++) {
    sbx_runner_command command = command_of(i < COUNT(specs) ? &specs[i] : &much);
    sbx_buf bufs[2];
    sbx_json_doc *docs[2];
    sbx_slice plain = line_of(&bufs[0], &command, false, &docs[0]);
    sbx_slice json = line_of(&bufs[1], &command, true, &docs[1]);
    assert_slice(json, plain);
    sbx_json_free(docs[1], false);
    sbx_buf_deinit(&bufs[0]);
    sbx_buf_deinit(&bufs[1]);
    sbx_runner_command_deinit(&command);
  }
}

/* Folders of earlier commands go with the next one. */
static void test_folders_that_go_along(void **state) {
  static const char *const left[] = {"", " " TAG, " " TAG " fedcba9876543210fedcba9876543210"};
  (void)state;
  for (size_t i = 0; i < COUNT(left); i++) {
    sbx_runner_command command = command_of(&specs[0]);
    sbx_buf buf;
    sbx_json_doc *doc;
    command.left = left[i];
    sbx_slice text = line_of(&buf, &command, false, &doc);
    assert_true(says(text, i == 0   ? "'' '' </dev/null\n"
                           : i == 1 ? "'' '' " TAG " </dev/null\n"
                                    : "'' '' " TAG " fedcba9876543210fedcba9876543210 </"));
    sbx_buf_deinit(&buf);
    sbx_runner_command_deinit(&command);
  }
}

/* Words of the other programs: a text in base64, and ours. */
static void test_lines_that_ask(void **state) {
  static const struct {
    sbx_slice text;
    const char *words, *wanted;
  } cases[] = {{{NULL, 0}, "", " sh " TAG " </dev/null\n"},
               {{NULL, 0}, " 1 2", " sh " TAG " 1 2 </dev/null\n"},
               {BYTES(""), " 3", " sh " TAG " '' 3 </dev/null\n"},
               {BYTES("it's"), " 3", " sh " TAG " 'aXQncw==' 3 </dev/null\n"}};
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_buf buf;
    sbx_buf_init(&buf, SIZE_MAX);
    sbx_runner_line line = {.buf = &buf};
    sbx_runner_line_ask(&line, SBX_RUNNER_STOP, TAG, cases[i].text, cases[i].words);
    assert_true(says(sbx_buf_slice(&buf), cases[i].wanted));
    sbx_buf_deinit(&buf);
  }
}

static void test_limits_of_a_line(void **state) {
  static const struct {
    uint64_t ms;
    const char *words;
  } cases[] = {{1, "' 0.001 10 20 "},
               {30000, "' 30 10 20 "},
               {1500, "' 1.500 10 20 "},
               {2147483000, "' 2147483 10 20 "},
               {SBX_NO_TIMEOUT, "' 0 10 20 "}};
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_exec_spec spec = {.kind = SBX_EXEC_SHELL, .timeout_ms = cases[i].ms};
    sbx_runner_command command = command_of(&spec);
    sbx_buf buf;
    sbx_json_doc *doc;
    assert_true(says(line_of(&buf, &command, false, &doc), cases[i].words));
    sbx_buf_deinit(&buf);
    sbx_runner_command_deinit(&command);
  }
}

static void test_what_was_stored_is_named(void **state) {
  sbx_runner_command command = command_of(&specs[1]);
  sbx_buf buf;
  sbx_json_doc *doc;
  (void)state;
  for (size_t i = 0; i < SBX_RUNNER_PARTS; i++)
    command.stored[i] = true;
  assert_true(says(line_of(&buf, &command, false, &doc), " node '' @ @ @ <"));
  sbx_buf_deinit(&buf);
  sbx_runner_command_deinit(&command);
}

static void test_writing_without_memory(void **state) {
  size_t live = sbx_alloc_live();
  (void)state;
  for (size_t i = 0; i < COUNT(specs) * 2; i++) {
    int rc = SBX_ENOMEM;
    for (size_t nth = 1; rc != SBX_OK; nth++) {
      sbx_runner_command command;
      sbx_buf buf;
      sbx_buf_init(&buf, SIZE_MAX);
      sbx_alloc_fail_at(nth, false);
      rc = sbx_runner_command_init(&command, &specs[i / 2], true);
      command.tag = TAG;
      if (rc == SBX_OK)
        sbx_runner_line_run(&(sbx_runner_line){.buf = &buf, .json = i % 2 == 1}, &command);
      sbx_alloc_fail_at(0, false);
      rc = rc != SBX_OK ? rc : buf.error;
      sbx_runner_command_deinit(&command);
      assert_true(rc == SBX_OK || rc == SBX_ENOMEM);
      sbx_buf_deinit(&buf);
      assert_int_equal(sbx_alloc_live(), live);
    }
  }
}

/* ---- the report ---- */

static int read_text(sbx_slice printed, sbx_runner_report *report) {
  sbx_err err;
  sbx_slice tight = tight_copy(printed);
  sbx_runner_report_init(report);
  int rc = sbx_runner_report_read(report, tight, TAG, "here", &err);
  tight_free(tight);
  return rc;
}

static void test_report(void **state) {
  sbx_runner_report report;
  (void)state;
  assert_int_equal(read_text(LIT(REPORT), &report), SBX_OK);
  assert_int_equal(report.end, SBX_RUNNER_RAN);
  assert_int_equal(report.exit_code, 7);
  assert_false(report.tree_gone);
  assert_int_equal(report.background, SBX_RUNNER_LIVES);
  assert_int_equal(report.lost[0], 0);
  assert_int_equal(report.lost[1], 9);
  assert_slice(sbx_buf_slice(&report.head[0]), LIT("hello"));
  assert_slice(sbx_buf_slice(&report.head[1]), LIT("err"));
  sbx_runner_report_deinit(&report);
}

static void test_words_of_a_report(void **state) {
  static const struct {
    sbx_slice text;
    sbx_runner_end end;
  } cases[] = {
      {BYTES(TAG " late" NOTHING), SBX_RUNNER_LATE},
      {BYTES(TAG " stopped" NOTHING), SBX_RUNNER_STOPPED},
      {BYTES(TAG " unstored" NOTHING), SBX_RUNNER_UNSTORED},
      {BYTES(TAG " nodir" NOTHING), SBX_RUNNER_NODIR},
      {BYTES(TAG " noshell" NOTHING), SBX_RUNNER_NOSHELL},
      {BYTES(TAG " again" NOTHING), SBX_RUNNER_AGAIN},
      {BYTES(TAG " going" NOTHING), SBX_RUNNER_GOING},
      {BYTES(TAG " absent" NOTHING), SBX_RUNNER_ABSENT},
      {BYTES(TAG " ended" NOTHING), SBX_RUNNER_ENDED},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_runner_report report;
    assert_int_equal(read_text(cases[i].text, &report), SBX_OK);
    assert_int_equal(report.end, cases[i].end);
    sbx_runner_report_deinit(&report);
  }
}

/* A success only with the last letter of "end". */
static void test_report_cut_anywhere(void **state) {
  sbx_runner_report report;
  size_t whole = sizeof REPORT - 2;
  (void)state;
  for (size_t len = 0; len <= whole; len++) {
    int rc = read_text(sbx_slice_of(REPORT, len), &report);
    assert_int_equal(rc, len < whole ? SBX_EPROTO : SBX_OK);
    sbx_runner_report_deinit(&report);
  }
}

static void test_reports_that_are_wrong(void **state) {
  static const sbx_slice cases[] = {
      BYTES("0123456789abcdef0123456789abcdee ran" NOTHING),
      BYTES(TAG " walked" NOTHING),
      BYTES(TAG " ran 256 0 0 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran -1 0 0 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 2 0 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0 0 3 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0 9999999999999999999 0 0 0\n\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 1 0 0 0 0\naGVsbG8=\n\n\n\n" TAG " end\n"), /* more than its size */
      BYTES(TAG " ran 0 0 9 0 0 0 0\naG!!\n\n\n\n" TAG " end\n"),
      BYTES(TAG " ran 0 0 0 0 0 0 0\n\n\n\n\n" TAG " endless\n"),
      BYTES(TAG " ran 0 0 0 0 0 0 0\n\n\n\n" TAG " end\n"),
      BYTES(TAG TAG " ran" NOTHING),
      BYTES("\0\0\0\n\n\n"),
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) {
    sbx_runner_report report;
    assert_int_equal(read_text(cases[i], &report), SBX_EPROTO);
    sbx_runner_report_deinit(&report);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_programs_are_escaped_for_json),
      cmocka_unit_test(test_programs_are_quoted_for_a_shell_in_json),
      cmocka_unit_test(test_text_of_the_user_is_not_in_the_program),
      cmocka_unit_test(test_a_line_is_the_same_in_json_or_not),
      cmocka_unit_test(test_folders_that_go_along),
      cmocka_unit_test(test_lines_that_ask),
      cmocka_unit_test(test_limits_of_a_line),
      cmocka_unit_test(test_what_was_stored_is_named),
      cmocka_unit_test(test_writing_without_memory),
      cmocka_unit_test(test_report),
      cmocka_unit_test(test_words_of_a_report),
      cmocka_unit_test(test_report_cut_anywhere),
      cmocka_unit_test(test_reports_that_are_wrong),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
