/* Tests of the local provider with real commands: what they get, what comes back, what is left.
 *
 * Processes that must end hold a named pipe open, so that its end can be awaited. */
#include "support/local_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static local_fixture *of(void **state) {
  return *state;
}

/* ---- ends ---- */

static void test_exit_codes(void **state) {
  local_fixture *f = of(state);
  local_result r;
  local_assert_shell(f, "echo out; echo err >&2; exit 3", 3, "out\nerr\n");
  local_assert_shell(f, "", 0, "");
  local_assert_shell(f, "  # only a comment", 0, "");
  local_assert_shell(f, "exit 255", 255, "");
  sbx_exec_spec spec = local_shell("nosuchcmd_zz --flag");
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 127);
  assert_non_null(strstr(r.output.ptr, "nosuchcmd_zz: command not found"));
  local_result_free(&r);
  spec.shell = LIT("sh");
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 127);
  assert_non_null(strstr(r.output.ptr, "nosuchcmd_zz: not found"));
  local_result_free(&r);
  spec = local_shell("--version");
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 127);
  assert_int_equal(r.exec.outcome, SBX_EXITED);
  assert_int_equal(r.exec.termination, SBX_TERM_NONE);
  assert_false(r.exec.background_killed);
  local_result_free(&r);
}

static void test_signals(void **state) {
  local_fixture *f = of(state);
  static const struct {
    const char *name;
    int number;
  } cases[] = {{"KILL", SIGKILL}, {"TERM", SIGTERM}, {"SEGV", SIGSEGV}, {"PIPE", SIGPIPE}};
  for (size_t i = 0; i < COUNT(cases); i++) {
    local_result r;
    char text[32], name[16];
    snprintf(text, sizeof text, "kill -%s $$", cases[i].name);
    snprintf(name, sizeof name, "SIG%s", cases[i].name);
    sbx_exec_spec spec = local_shell(text);
    local_exec(f, &r, &spec);
    assert_int_equal(r.exec.outcome, SBX_SIGNALLED);
    assert_int_equal(r.exec.exit_code, 128 + cases[i].number);
    assert_string_equal(r.exec.signal_name, name);
    local_result_free(&r);
  }
}

static void exec_argv(local_fixture *f, local_result *r, const char *const *argv) {
  sbx_slice items[8];
  sbx_exec_spec spec = {.kind = SBX_EXEC_ARGV, .argv = items};
  for (; argv[spec.argc] != NULL; spec.argc++)
    items[spec.argc] = sbx_slice_str(argv[spec.argc]);
  local_begin(f, r, &spec, false);
  local_await(f, r);
}

static void never(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  (void)arg;
  (void)err;
  (void)result;
  fail();
}

static void test_argv_without_a_shell(void **state) {
  local_fixture *f = of(state);
  local_result r;
  exec_argv(f, &r, (const char *[]){"printf", "[%s]", "", "a  b", "$HOME", "`id`", "-x", NULL});
  assert_slice(sbx_buf_slice(&r.out), LIT("[][a  b][$HOME][`id`][-x]"));
  local_result_free(&r);
  exec_argv(f, &r, (const char *[]){"nosuch_zz", NULL});
  assert_int_equal(r.exec.exit_code, 127);
  assert_slice(sbx_buf_slice(&r.error), LIT("nosuch_zz: not found\n"));
  assert_slice(sbx_buf_slice(&r.out), LIT(""));
  local_result_free(&r);
  exec_argv(f, &r, (const char *[]){"/etc/passwd", NULL});
  assert_int_equal(r.exec.exit_code, 126);
  assert_slice(sbx_buf_slice(&r.error), LIT("/etc/passwd: permission denied\n"));
  local_result_free(&r);

  char *huge = calloc(1, 300001);
  memset(huge, 'x', 300000);
  sbx_slice items[] = {LIT("true"), sbx_slice_str(huge)};
  sbx_exec_spec spec = {.kind = SBX_EXEC_ARGV, .argv = items, .argc = COUNT(items)};
  sbx_err err;
  assert_int_equal(sbx_sandbox_exec(f->sb, &spec, NULL, never, NULL, NULL, &err), SBX_ETOOBIG);
  free(huge);
}

/* ---- code and text ---- */

static void test_code_is_literal(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec = local_code(
      SBX_LANG_PYTHON, "print('''a\"b'c `id` $HOME\\\\n\t''')\nfor i in range(2):\n  print(i)\n");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.output), LIT("a\"b'c `id` $HOME\\n\t\n0\n1\n"));
  local_result_free(&r);
  spec = local_code(SBX_LANG_NODE, "console.log(`a\"b'c $HOME \\\\n\t`)");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.output), LIT("a\"b'c $HOME \\n\t\n"));
  local_result_free(&r);
  spec = local_code(SBX_LANG_PYTHON, "print('a')\n1/0");
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 1);
  assert_slice(sbx_buf_slice(&r.out), LIT("a\n"));
  assert_non_null(strstr(r.error.ptr, "ZeroDivisionError"));
  local_result_free(&r);
  spec = local_code(SBX_LANG_PYTHON, "input()");
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 1);
  assert_non_null(strstr(r.error.ptr, "EOFError"));
  local_result_free(&r);
  spec = local_code(SBX_LANG_PYTHON, "");
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 0);
  local_result_free(&r);
}

static void test_arguments_of_node(void **state) {
  local_fixture *f = of(state);
  local_result r;
  local_options(f, "\"nodePath\":\"echo\",\"nodeArgs\":[\"-a\",\"\",\"b  c\"]");
  sbx_exec_spec spec = local_code(SBX_LANG_NODE, "1");
  local_exec(f, &r, &spec);
  assert_non_null(strstr(r.out.ptr, "-a  b  c .cloudsandbox-"));
  assert_non_null(strstr(r.out.ptr, ".js\n"));
  local_result_free(&r);
  spec = local_code(SBX_LANG_PYTHON, "import sys; print(len(sys.argv), sys.argv[0][:14])");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), LIT("1 .cloudsandbox-\n"));
  local_result_free(&r);
}

/* `head` + 400000 times 'a' + `tail`, as large as no argument may be. */
static char *large_text(const char *head, const char *tail) {
  size_t head_len = strlen(head), size = head_len + 400000 + strlen(tail) + 1;
  char *text = malloc(size);
  snprintf(text, size, "%s", head);
  memset(text + head_len, 'a', 400000);
  snprintf(text + head_len + 400000, size - head_len - 400000, "%s", tail);
  return text;
}

static void test_large_code_and_text(void **state) {
  local_fixture *f = of(state);
  local_result r;
  static const struct {
    sbx_exec_kind kind;
    sbx_language language;
    const char *head, *tail;
    int code;
    const char *output;
  } cases[] = {
      {SBX_EXEC_CODE, SBX_LANG_PYTHON, "x = '", "'\nprint(len(x))", 0, "400000\n"},
      {SBX_EXEC_CODE, SBX_LANG_NODE, "let x = '", "'\nconsole.log(x.length)", 0, "400000\n"},
      {SBX_EXEC_SHELL, SBX_LANG_NODE, "x='", "'; echo ${#x}; exit 3", 3, "400000\n"},
      {SBX_EXEC_SHELL, SBX_LANG_NODE, "#", "\ntest ${0##*/} = $S && ls /proc/self/fd", 0,
       "0\n1\n2\n3\n"},
      {SBX_EXEC_SHELL, SBX_LANG_NODE, "x='", "'\nreturn 4; echo no", 4, ""},
      {SBX_EXEC_SHELL, SBX_LANG_NODE, "x='", "'\nkill -9 $$", 137, ""},
      {SBX_EXEC_SHELL, SBX_LANG_NODE, "# ", "\nfalse", 1, ""},
  };
  static const char *const shells[] = {"sh", "bash"};
  for (size_t i = 0; i < 2 * COUNT(cases); i++) {
    const char *shell = shells[i % 2];
    sbx_env_var var = {LIT("S"), sbx_slice_str(shell)};
    char *text = large_text(cases[i / 2].head, cases[i / 2].tail);
    sbx_exec_spec spec = {.kind = cases[i / 2].kind,
                          .language = cases[i / 2].language,
                          .text = sbx_slice_str(text),
                          .shell = sbx_slice_str(shell),
                          .env = &var,
                          .env_count = 1};
    local_exec(f, &r, &spec);
    free(text);
    assert_slice(sbx_buf_slice(&r.output), sbx_slice_str(cases[i / 2].output));
    assert_int_equal(r.exec.exit_code, cases[i / 2].code);
    local_result_free(&r);
  }
}

/* ---- stdin ---- */

static void test_stdin_is_empty(void **state) {
  local_fixture *f = of(state);
  local_assert_shell(f, "cat", 0, "");
  local_assert_shell(f, "read x; echo got=$x", 0, "got=\n");
  local_assert_shell(f, "cat /dev/tty 2>/dev/null || echo no terminal", 0, "no terminal\n");
}

static void test_stdin_bytes(void **state) {
  local_fixture *f = of(state);
  local_result r;
  size_t size = 5 * 1000 * 1000;
  char *bytes = malloc(size);
  for (size_t i = 0; i < size; i++)
    bytes[i] = (char)(i * 7 % 256);
  sbx_exec_spec spec = local_shell("cat");
  spec.stdin_bytes = sbx_slice_of(bytes, size);
  spec.max_output_bytes = size;
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), spec.stdin_bytes);
  local_result_free(&r);
  free(bytes);

  spec = local_code(SBX_LANG_PYTHON, "print(input() + '!')");
  spec.stdin_bytes = LIT("line\n");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), LIT("line!\n"));
  local_result_free(&r);
  spec = local_code(SBX_LANG_NODE, "console.log(require('fs').readFileSync(0, 'utf8') + '!')");
  spec.stdin_bytes = LIT("text");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), LIT("text!\n"));
  local_result_free(&r);

  char *text = large_text("x = '", "'; print(len(x), input())");
  spec = local_code(SBX_LANG_PYTHON, text);
  spec.stdin_bytes = LIT("x");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), LIT("400000 x\n"));
  local_result_free(&r);
  free(text);
}

/* ---- output ---- */

static void test_output_is_bytes(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec = local_shell("printf 'a\\0b\\377\\r\\nc\\rd\\n'; printf '\\360\\237';"
                                   " sleep 0.05; printf '\\230\\200'");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.output), LIT("a\0b\377\r\nc\rd\n\360\237\230\200"));
  local_result_free(&r);
}

static void test_streams_apart_and_merged(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec =
      local_shell("i=0; while [ $i -lt 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done");
  spec.merge_streams = true;
  local_exec(f, &r, &spec);
  sbx_buf expected;
  sbx_buf_init(&expected, 100000);
  for (int i = 0; i < 200; i++)
    sbx_buf_appendf(&expected, "o%d\ne%d\n", i, i);
  assert_slice(sbx_buf_slice(&r.output), sbx_buf_slice(&expected));
  assert_int_equal(r.out.len + r.error.len, 0);
  local_result_free(&r);
  sbx_buf_deinit(&expected);
  spec = local_shell("echo out; echo err >&2; echo out2");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), LIT("out\nout2\n"));
  assert_slice(sbx_buf_slice(&r.error), LIT("err\n"));
  assert_int_equal(r.output.len, 13);
  local_result_free(&r);
}

static void test_a_flood_is_bounded_and_counted(void **state) {
  local_fixture *f = of(state);
  for (int merged = 0; merged < 2; merged++) {
    for (int tail = 0; tail < 2; tail++) {
      local_result r;
      sbx_exec_spec spec = local_shell("head -c 20000000 /dev/zero | tr '\\0' x; echo; exit 5");
      spec.merge_streams = merged != 0;
      spec.truncate = tail ? SBX_KEEP_HEAD_AND_TAIL : SBX_KEEP_HEAD;
      spec.max_output_bytes = 1000;
      local_exec(f, &r, &spec);
      assert_int_equal(r.exec.exit_code, 5);
      assert_int_equal(r.output.len, 1000);
      assert_int_equal(r.exec.output.dropped, 20000001 - 1000);
      assert_int_equal(r.output.ptr[999], tail ? '\n' : 'x');
      local_result_free(&r);
    }
  }
}

static void test_a_listener_sees_everything(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec = local_shell("seq 1 200000");
  spec.max_output_bytes = 10;
  local_begin(f, &r, &spec, true);
  local_await(f, &r);
  assert_int_equal(r.output.len, 10);
  assert_int_equal(r.streamed.len, 1288895);
  assert_int_equal(r.exec.output.dropped, 1288885);
  assert_slice(sbx_slice_skip(sbx_buf_slice(&r.streamed), r.streamed.len - 8), LIT("\n200000\n"));
  local_result_free(&r);
}

/* ---- environment and directory ---- */

static void test_the_environment_is_what_was_named(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char expected[4096];
  setenv("WANTED", "of this process, which the core does not look at", 1);
  local_options(f,
                "\"environment\":{\"PATH\":\"/bin:/usr/bin:/x\",\"SECRET_X\":\"1\",\"ALSO\":\"a\","
                "\"WANTED\":\"w w\",\"RAW\":[\"Yf9i\"]},"
                "\"inheritEnv\":[\"WANTED\",\"ALSO\",\"ABSENT\",\"RAW\"],"
                "\"env\":{\"A\":\"1\",\"B\":\"\",\"ALSO\":\"over\"}");
  sbx_env_var vars[] = {{LIT("B"), LIT("2")}, {LIT("C"), LIT("x\ny=$HOME")}, {LIT("C"), LIT("3")}};
  sbx_slice argv[] = {LIT("env")};
  sbx_exec_spec spec = {
      .kind = SBX_EXEC_ARGV, .argv = argv, .argc = 1, .env = vars, .env_count = COUNT(vars)};
  local_exec(f, &r, &spec);
  snprintf(expected, sizeof expected,
           "A=1\nALSO=over\nB=2\nC=3\nHOME=%s\nLANG=C.UTF-8\nPATH=%s\nRAW=a\xff"
           "b\nTERM=dumb\nWANTED=w w\n",
           sbx_sandbox_id(f->sb), "/bin:/usr/bin:/x");
  assert_slice(sbx_buf_slice(&r.output), sbx_slice_str(expected));
  local_result_free(&r);

  local_options(f, "\"environment\":{\"LANG\":\"de_DE.utf8\",\"TZ\":\"UTC\"},\"env\":{\"HOME\":\"/"
                   "elsewhere\",\"TERM\":\"xterm\"}");
  spec.env_count = 0;
  local_exec(f, &r, &spec);
  snprintf(expected, sizeof expected, "HOME=%s\nLANG=de_DE.utf8\nPATH=%s\nTERM=xterm\nTZ=UTC\n",
           "/elsewhere", "/usr/local/bin:/usr/bin:/bin");
  assert_slice(sbx_buf_slice(&r.output), sbx_slice_str(expected));
  local_result_free(&r);
  unsetenv("WANTED");
}

static void test_programs_are_searched_in_the_commands_path(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_env_var path = {LIT("PATH"), LIT("/no/such")};
  sbx_exec_spec spec = local_code(SBX_LANG_PYTHON, "print(1)");
  spec.env = &path;
  spec.env_count = 1;
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 127);
  assert_slice(sbx_buf_slice(&r.output), LIT("python3: not found\n"));
  local_result_free(&r);
}

static void assert_cwd_fails(local_fixture *f, const char *cwd, int code) {
  local_result r;
  sbx_exec_spec spec = local_shell("touch ran");
  spec.cwd = sbx_slice_str(cwd);
  local_begin(f, &r, &spec, false);
  local_await(f, &r);
  assert_int_equal(r.err.code, code);
  assert_non_null(strstr(r.err.message, cwd));
  assert_false(r.err.may_have_run);
  local_result_free(&r);
}

static void test_working_directory(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char expected[256];
  local_assert_shell(f, "mkdir -p sub/dir; touch file; ln -s .. up; pwd > id", 0, "");
  sbx_exec_spec spec = local_shell("pwd");
  spec.cwd = LIT("sub/dir");
  local_exec(f, &r, &spec);
  snprintf(expected, sizeof expected, "%s/sub/dir\n", sbx_sandbox_id(f->sb));
  assert_slice(sbx_buf_slice(&r.output), sbx_slice_str(expected));
  local_result_free(&r);
  assert_cwd_fails(f, "absent", SBX_EINVAL);
  assert_cwd_fails(f, "file", SBX_EINVAL);
  assert_cwd_fails(f, "../..", SBX_EPATH);
  assert_cwd_fails(f, "/etc", SBX_EPATH);
  assert_cwd_fails(f, "up", SBX_EPATH);
}

static void test_no_descriptor_is_inherited(void **state) {
  local_fixture *f = of(state);
  int leak = open("/dev/null", O_RDONLY);
  local_assert_shell(f, "ls /proc/self/fd", 0, "0\n1\n2\n3\n"); /* 3 is ls reading the folder */
  close(leak);
}

/* ---- ends that are not the command's own ---- */

/* A limit that a command reaches with its first output behind it, also on a busy machine. */
enum { ENOUGH_TO_BEGIN_MS = 2000 };

static void test_a_timeout_ends_a_stubborn_tree(void **state) {
  local_fixture *f = of(state);
  local_result r;
  local_options(f, "\"killGraceMs\":50");
  sbx_exec_spec spec =
      local_shell("trap '' TERM INT HUP; echo before; setsid sleep 300 &"
                  "(setsid sleep 300 >/dev/null 2>&1 &); while :; do sleep 1; done");
  spec.timeout_ms = ENOUGH_TO_BEGIN_MS;
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.outcome, SBX_TIMED_OUT);
  assert_int_equal(r.exec.exit_code, 124);
  assert_int_equal(r.exec.termination, SBX_TERM_CONFIRMED);
  assert_slice(sbx_buf_slice(&r.output), LIT("before\n"));
  local_result_free(&r);
}

/* The shell itself is gone at once; what it left behind cleans up in its own time. */
static void test_the_grace_is_for_the_whole_tree(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec =
      local_shell("(trap 'sleep 0.4; echo clean; exit' TERM; echo ready; while :; do sleep 0.05; "
                  "done) & wait");
  local_begin(f, &r, &spec, true);
  local_await_output(f, &r, "ready\n");
  sbx_call_cancel(r.call);
  local_await(f, &r);
  assert_int_equal(r.exec.outcome, SBX_CANCELLED);
  assert_int_equal(r.exec.termination, SBX_TERM_CONFIRMED);
  assert_slice(sbx_buf_slice(&r.out), LIT("ready\nclean\n"));
  local_result_free(&r);
}

static void assert_code(local_fixture *f, const sbx_exec_spec *spec, sbx_slice output) {
  local_result r;
  local_exec(f, &r, spec);
  assert_int_equal(r.err.code, SBX_OK);
  assert_slice(sbx_buf_slice(&r.error), LIT(""));
  assert_slice(sbx_buf_slice(&r.out), output);
  local_result_free(&r);
}

static void test_code_finds_nothing_on_stdin(void **state) {
  local_fixture *f = of(state);
  sbx_exec_spec spec = local_code(SBX_LANG_PYTHON, "print(len(open('/dev/stdin').read()))");
  assert_code(f, &spec, LIT("0\n"));
  enum { SIZE = 400000 };
  char *text = malloc(SIZE + 1);
  assert_non_null(text);
  memset(text, '#', SIZE);
  int n = snprintf(text, SIZE, "print(len(open('/dev/stdin').read()))\n");
  text[n] = '#';
  text[SIZE] = '\0';
  spec = local_code(SBX_LANG_PYTHON, text);
  assert_code(f, &spec, LIT("0\n"));
  free(text);
  spec = local_code(SBX_LANG_NODE,
                    "console.log(require('fs').readFileSync('/dev/stdin', 'utf8').length)");
  assert_code(f, &spec, LIT("0\n"));
}

static void test_names_that_no_program_can_have(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char name[8000];
  local_assert_shell(f, "ln -s loop loop", 0, "");
  memset(name, 'n', sizeof name);
  name[0] = '/';
  const sbx_slice names[] = {sbx_slice_of(name, sizeof name), sbx_slice_of(name + 1, 300),
                             LIT("./loop")};
  for (size_t i = 0; i < 3; i++) {
    sbx_exec_spec spec = {.kind = SBX_EXEC_ARGV, .argv = &names[i], .argc = 1};
    local_begin(f, &r, &spec, false);
    local_await(f, &r);
    assert_int_equal(r.err.code, SBX_EINVAL);
    assert_false(r.err.may_have_run);
    local_result_free(&r);
  }
}

/* In time that grows with their number, not with its square. */
static void test_very_many_variables(void **state) {
  local_fixture *f = of(state);
  local_result r;
  enum { COUNT = 100000 };
  char(*names)[16] = calloc(COUNT, sizeof *names);
  sbx_env_var *env = calloc(COUNT, sizeof *env);
  assert_true(names != NULL && env != NULL);
  for (size_t i = 0; i < COUNT; i++) {
    snprintf(names[i], sizeof names[i], "V%zu", i / 100);
    env[i] = (sbx_env_var){sbx_slice_str(names[i]), sbx_slice_str(names[i % 100])};
  }
  env[COUNT - 1].value = LIT("last");
  sbx_exec_spec spec = local_shell("echo $V999 $V0; env | grep -c ^V");
  spec.env = env;
  spec.env_count = COUNT;
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.out), LIT("last V0\n1000\n"));
  local_result_free(&r);
  free(names);
  free(env);
}

static void test_code_that_looks_like_an_option(void **state) {
  local_fixture *f = of(state);
  static const sbx_language languages[] = {SBX_LANG_PYTHON, SBX_LANG_NODE};
  for (size_t i = 0; i < 2; i++) {
    sbx_exec_spec spec = local_code(languages[i], "-1");
    spec.stdin_bytes = LIT("x");
    assert_code(f, &spec, LIT(""));
  }
}

static void be_busy(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)stream;
  (void)bytes;
  if (!*(bool *)arg)
    usleep((ENOUGH_TO_BEGIN_MS + 200) * 1000);
  *(bool *)arg = true;
}

static void note_exit(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  assert_null(err);
  assert_int_equal(result->outcome, SBX_EXITED);
  assert_int_equal(result->exit_code, 3);
  assert_int_equal(result->out.bytes.len + result->out.dropped, 60001);
  assert_true(*(bool *)arg);
}

/* The limit is on the command, not on how long the host takes to look at it. */
static void test_a_command_that_ends_in_time_while_the_host_is_busy(void **state) {
  local_fixture *f = of(state);
  bool busy = false;
  local_start(f);
  sbx_exec_spec spec = local_shell("echo; sleep 0.1; head -c 60000 /dev/zero; exit 3");
  spec.timeout_ms = ENOUGH_TO_BEGIN_MS;
  assert_int_equal(sbx_sandbox_exec(f->sb, &spec, be_busy, note_exit, &busy, NULL, NULL), SBX_OK);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_true(busy);
}

static void test_a_timeout_asks_first(void **state) {
  local_fixture *f = of(state);
  local_result r;
  local_options(f, "\"killGraceMs\":3000");
  sbx_exec_spec spec = local_shell("trap 'echo cleaned; exit 0' TERM; echo ready; "
                                   "while :; do sleep 0.01; done");
  spec.timeout_ms = ENOUGH_TO_BEGIN_MS;
  spec.merge_streams = true;
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.outcome, SBX_TIMED_OUT);
  assert_int_equal(r.exec.termination, SBX_TERM_CONFIRMED);
  assert_non_null(strstr(r.output.ptr, "cleaned\n"));
  local_result_free(&r);
}

static void test_cancel(void **state) {
  local_fixture *f = of(state);
  local_result r;
  local_options(f, "\"killGraceMs\":0");
  sbx_exec_spec spec = local_shell("trap '' TERM; echo ready; kill -STOP $$; sleep 300");
  local_begin(f, &r, &spec, true);
  local_await_output(f, &r, "ready\n");
  sbx_call_cancel(r.call);
  local_await(f, &r);
  assert_int_equal(r.exec.outcome, SBX_CANCELLED);
  assert_int_equal(r.exec.exit_code, 130);
  assert_int_equal(r.exec.termination, SBX_TERM_CONFIRMED);
  local_result_free(&r);
  local_assert_shell(f, "echo still here", 0, "still here\n");
}

/* ---- what a command leaves behind ---- */

/* Runs text that keeps "$P" open as descriptor 7 in whatever it leaves behind. */
/* `text` leaves something behind that holds the pipe open. */
static int leave_behind(local_fixture *f, const char *text, bool end, char *path, size_t size) {
  local_result r;
  int fd = local_make_pipe(f, path, size);
  sbx_env_var var = {LIT("P"), sbx_slice_str(path)};
  sbx_exec_spec spec = local_shell(text);
  spec.env = &var;
  spec.env_count = 1;
  spec.end_background = end;
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 0);
  assert_int_equal(r.exec.background_killed, end);
  assert_int_equal(r.exec.background_running, !end);
  assert_slice(sbx_buf_slice(&r.output), LIT("done\n"));
  local_result_free(&r);
  return fd;
}

static void test_C163_background_processes_live_until_the_close_or_end(void **state) {
  static const char *const texts[] = {
      "exec 7>$P; sleep 300 & echo done",
      "exec 7>$P; sleep 300 >/dev/null 2>&1 & echo done",
      "exec 7>$P; setsid sleep 300 & echo done",
      "exec 7>$P; (setsid sh -c 'trap \"\" TERM HUP; sleep 300; :' >/dev/null 2>&1 &); echo done",
  };
  local_fixture *f = of(state);
  char path[128], byte;
  for (size_t i = 0; i < COUNT(texts); i++)
    local_await_pipe_end(leave_behind(f, texts[i], true, path, sizeof path), path);
  for (size_t i = 0; i < COUNT(texts); i++) {
    int fd = leave_behind(f, texts[i], false, path, sizeof path);
    local_assert_shell(f, "echo next", 0, "next\n");
    assert_int_equal(read(fd, &byte, 1), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(local_close(f), SBX_OK);
    assert_int_equal(read(fd, &byte, 1), 0);
    close(fd);
    unlink(path);
    local_free_sandbox(f);
    local_options(f, "");
  }
}

static void test_C163_what_a_background_prints_is_dropped(void **state) {
  local_fixture *f = of(state);
  local_result r;
  /* It goes on when its pipe would long be full, and is not killed for writing to it. */
  sbx_exec_spec spec = local_shell(
      "(sleep 0.3; head -c 3000000 /dev/zero; echo $? > wrote; sleep 300) & echo early");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.output), LIT("early\n"));
  assert_true(r.exec.background_running);
  local_result_free(&r);
  local_assert_shell(f, "until [ -s wrote ]; do sleep 0.02; done; cat wrote", 0, "0\n");
}

static void test_the_rest_may_write_for_a_short_time(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec = local_shell("(sleep 0.05; echo late) & echo early");
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.output), LIT("early\nlate\n"));
  assert_false(r.exec.background_killed);
  assert_false(r.exec.background_running);
  local_result_free(&r);
  /* One that floods is left, or ended, after that time as well. */
  for (int end = 0; end < 2; end++) {
    spec = local_shell("yes & exit 6");
    spec.max_output_bytes = 100;
    spec.end_background = end;
    local_exec(f, &r, &spec);
    assert_int_equal(r.exec.exit_code, 6);
    assert_int_equal(r.exec.background_killed, end);
    assert_int_equal(r.exec.background_running, !end);
    local_result_free(&r);
  }
}

static void test_closed_streams_are_not_the_end(void **state) {
  local_fixture *f = of(state);
  local_assert_shell(f, "exec >&- 2>&-; sleep 0.05; exit 8", 8, "");
}

static void test_many_at_once(void **state) {
  local_fixture *f = of(state);
  enum { COUNT_AT_ONCE = 200 };
  local_result *results = calloc(COUNT_AT_ONCE, sizeof *results);
  local_start(f);
  size_t fds = local_count_fds();
  for (int i = 0; i < COUNT_AT_ONCE; i++) {
    char text[64];
    snprintf(text, sizeof text, "echo %d; exit %d", i, i % 7);
    sbx_exec_spec spec = local_shell(text);
    spec.merge_streams = true;
    local_begin(f, &results[i], &spec, false);
  }
  for (int i = 0; i < COUNT_AT_ONCE; i++) {
    local_await(f, &results[i]);
    assert_int_equal(results[i].err.code, SBX_OK);
    assert_int_equal(results[i].exec.exit_code, i % 7);
    assert_int_equal(strtol(results[i].output.ptr, NULL, 10), i);
    local_result_free(&results[i]);
  }
  free(results);
  assert_int_equal(local_count_fds(), fds);
  /* Of the helper's children only the guard of this command is left. */
  local_assert_shell(f,
                     "set -- $(cat /proc/$PPID/stat); h=$4; while set -- $(cat /proc/$h/task/$h/"
                     "children); [ $# -gt 1 ]; do sleep 0.01; done; echo $#",
                     0, "1\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, local_setup, local_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_exit_codes),
      TEST(test_signals),
      TEST(test_argv_without_a_shell),
      TEST(test_code_is_literal),
      TEST(test_arguments_of_node),
      TEST(test_large_code_and_text),
      TEST(test_stdin_is_empty),
      TEST(test_stdin_bytes),
      TEST(test_output_is_bytes),
      TEST(test_streams_apart_and_merged),
      TEST(test_a_flood_is_bounded_and_counted),
      TEST(test_a_listener_sees_everything),
      TEST(test_the_environment_is_what_was_named),
      TEST(test_programs_are_searched_in_the_commands_path),
      TEST(test_working_directory),
      TEST(test_no_descriptor_is_inherited),
      TEST(test_a_timeout_ends_a_stubborn_tree),
      TEST(test_a_timeout_asks_first),
      TEST(test_the_grace_is_for_the_whole_tree),
      TEST(test_code_finds_nothing_on_stdin),
      TEST(test_code_that_looks_like_an_option),
      TEST(test_names_that_no_program_can_have),
      TEST(test_very_many_variables),
      TEST(test_a_command_that_ends_in_time_while_the_host_is_busy),
      TEST(test_cancel),
      TEST(test_C163_background_processes_live_until_the_close_or_end),
      TEST(test_C163_what_a_background_prints_is_dropped),
      TEST(test_the_rest_may_write_for_a_short_time),
      TEST(test_closed_streams_are_not_the_end),
      TEST(test_many_at_once),
  };
  return cmocka_run_group_tests_name("local", tests, NULL, NULL);
}
