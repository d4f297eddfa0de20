/* Tests of local sandboxes from start to end, and of what goes wrong around them: helpers and hosts
 * that die, workspaces that vanish, loops that end, memory and descriptors that run out. */
#include "support/local_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static local_fixture *of(void **state) {
  return *state;
}

static void note_done(void *arg, const sbx_err *err) {
  local_result *r = arg;
  r->times++;
  if (err != NULL)
    r->err = *err;
}

static void ignore_done(void *arg, const sbx_err *err) {
  (void)arg;
  (void)err;
}

/* ---- options ---- */

static void test_options_are_checked(void **state) {
  local_fixture *f = of(state);
  static const char *const refused[] = {
      "{}",
      "{\"guardPath\":\"relative\"}",
      "{\"guardPath\":\"\"}",
      "{\"guardPath\":1}",
      "{\"guardPath\":\"/g\\u0000\"}",
      "{\"guardPath\":\"/g\",\"tempDir\":\"tmp\"}",
      "{\"guardPath\":\"/g\",\"workspace\":\"ws\"}",
      "{\"guardPath\":\"/g\",\"nodePath\":\"\"}",
      "{\"guardPath\":\"/g\",\"nodeArgs\":\"-r\"}",
      "{\"guardPath\":\"/g\",\"nodeArgs\":[\"a\",1]}",
      "{\"guardPath\":\"/g\",\"nodeArgs\":[\"a\\u0000\"]}",
      "{\"guardPath\":\"/g\",\"inheritEnv\":\"PATH\"}",
      "{\"guardPath\":\"/g\",\"inheritEnv\":[1]}",
      "{\"guardPath\":\"/g\",\"inheritEnv\":[\"A=B\"]}",
      "{\"guardPath\":\"/g\",\"env\":[]}",
      "{\"guardPath\":\"/g\",\"env\":{\"A\":1}}",
      "{\"guardPath\":\"/g\",\"env\":{\"1A\":\"\"}}",
      "{\"guardPath\":\"/g\",\"env\":{\"A\":\"\\u0000\"}}",
      "{\"guardPath\":\"/g\",\"killGraceMs\":3001}",
      "{\"guardPath\":\"/g\",\"killGraceMs\":-1}",
      "{\"guardPath\":\"/g\",\"killGraceMs\":0.5}",
      "{\"guardPath\":\"/g\",\"workSpace\":\"/tmp\"}",
  };
  for (size_t i = 0; i < COUNT(refused); i++) {
    sbx_sandbox *sb = NULL;
    sbx_err err = {0};
    assert_int_equal(sbx_sandbox_new(&sb, f->loop, "local", sbx_slice_str(refused[i]), &err),
                     SBX_EINVAL);
    assert_true(strlen(err.message) > 0);
  }
}

/* The start fails and names the file. */
static void assert_no_start(local_fixture *f, const char *options, int code, const char *named) {
  local_result r;
  sbx_exec_spec spec = local_shell("true");
  local_free_sandbox(f);
  sbx_err err;
  assert_int_equal(sbx_sandbox_new(&f->sb, f->loop, "local", sbx_slice_str(options), &err), SBX_OK);
  local_begin(f, &r, &spec, false);
  local_await(f, &r);
  assert_int_equal(r.err.code, code);
  assert_non_null(strstr(r.err.message, named));
  assert_false(r.err.may_have_run);
  local_result_free(&r);
}

static void test_a_helper_program_that_does_not_help(void **state) {
  local_fixture *f = of(state);
  char options[512], file[128];
  snprintf(file, sizeof file, "%s/plain-file", f->base);
  close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  static const char *const programs[] = {"/no/such/guard", "/bin/true", "/bin/cat", "/etc"};
  for (size_t i = 0; i <= COUNT(programs); i++) {
    const char *program = i < COUNT(programs) ? programs[i] : file;
    snprintf(options, sizeof options, "{\"guardPath\":\"%s\",\"tempDir\":\"%s\"}", program,
             f->base);
    assert_no_start(f, options, SBX_EBINARY, program);
  }
  unlink(file);
}

static void test_directories_that_cannot_be_used(void **state) {
  local_fixture *f = of(state);
  char options[512];
  snprintf(options, sizeof options, "{\"guardPath\":\"%s\",\"tempDir\":\"/no/such\"}",
           getenv("SBX_GUARD"));
  assert_no_start(f, options, SBX_EINVAL, "/no/such");
  snprintf(options, sizeof options, "{\"guardPath\":\"%s\",\"workspace\":\"/no/such\"}",
           getenv("SBX_GUARD"));
  assert_no_start(f, options, SBX_EINVAL, "/no/such");
  snprintf(options, sizeof options, "{\"guardPath\":\"%s\",\"workspace\":\"/etc/passwd\"}",
           getenv("SBX_GUARD"));
  assert_no_start(f, options, SBX_EINVAL, "/etc/passwd: Not a directory");
}

/* ---- start and close ---- */

static void test_the_workspace_lives_from_start_to_close(void **state) {
  local_fixture *f = of(state);
  struct stat st;
  char path[256];
  assert_null(sbx_sandbox_id(f->sb));
  assert_int_equal(local_count_entries(f->base), 0);
  local_start(f);
  snprintf(path, sizeof path, "%s", sbx_sandbox_id(f->sb));
  assert_int_equal(strncmp(path, f->base, strlen(f->base)), 0);
  assert_non_null(strstr(path, "/cloudsandbox-"));
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_mode & 07777, 0700);
  assert_int_equal(sbx_sandbox_capabilities(f->sb) & SBX_CAP_LOCAL, SBX_CAP_LOCAL);
  local_assert_shell(f, "mkdir -p a/b; touch a/b/f; chmod 500 a/b a; ln -s / out; ln -s .. up", 0,
                     "");
  assert_int_equal(local_close(f), SBX_OK);
  assert_int_equal(local_count_entries(f->base), 0);
  assert_int_equal(local_close(f), SBX_OK);
}

/* By both of its names; and the root of all is no special case. */
static void test_absolute_paths_in_a_given_workspace(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char options[256], path[128], link[128], by_path[140], by_link[140];
  snprintf(path, sizeof path, "%s/real", f->base);
  snprintf(link, sizeof link, "%s/link", f->base);
  assert_int_equal(mkdir(path, 0700), 0);
  assert_int_equal(symlink("real", link), 0);
  snprintf(options, sizeof options, "\"workspace\":\"%s/\"", link);
  local_options(f, options);
  snprintf(by_path, sizeof by_path, "%s/file", path);
  snprintf(by_link, sizeof by_link, "%s/file", link);
  assert_int_equal(local_write(f, &r, by_link, LIT("x")), SBX_OK);
  local_result_free(&r);
  assert_int_equal(local_read(f, &r, by_path), SBX_OK);
  assert_false(r.missing);
  local_result_free(&r);
  local_options(f, "\"workspace\":\"/\"");
  assert_int_equal(local_read(f, &r, by_path), SBX_OK);
  assert_false(r.missing);
  local_result_free(&r);
  local_free_sandbox(f);
  assert_int_equal(unlink(link), 0);
  local_remove_tree(path);
}

static void test_a_umask_that_leaves_nothing(void **state) {
  local_fixture *f = of(state);
  struct stat st;
  mode_t mask = umask(0777);
  local_start(f);
  umask(mask);
  assert_int_equal(stat(sbx_sandbox_id(f->sb), &st), 0);
  assert_int_equal(st.st_mode & 0777, 0700);
}

static void test_a_given_workspace_is_kept(void **state) {
  local_fixture *f = of(state);
  char path[128], option[256];
  snprintf(path, sizeof path, "%s/mine", f->base);
  snprintf(option, sizeof option, "\"workspace\":\"%s\"", path);
  assert_int_equal(mkdir(path, 0755), 0);
  local_options(f, option);
  local_assert_shell(f, "echo 1 > kept", 0, "");
  assert_string_equal(sbx_sandbox_id(f->sb), path);
  assert_int_equal(local_close(f), SBX_OK);
  local_free_sandbox(f);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(local_count_entries(path), 1);
  local_remove_tree(path);
}

static void test_a_failed_removal_can_be_repeated(void **state) {
  local_fixture *f = of(state);
  char path[256];
  local_start(f);
  snprintf(path, sizeof path, "%s/mnt", sbx_sandbox_id(f->sb));
  local_assert_shell(f, "mkdir mnt; echo 1 > file", 0, "");
  if (local_number(f, "mount -t tmpfs none mnt 2>/dev/null && touch mnt/inside; echo $?") != 0)
    skip();
  assert_int_equal(local_close(f), SBX_EPROVIDER);
  assert_int_equal(local_count_entries(path), 1);
  char command[300];
  snprintf(command, sizeof command, "umount %s", path);
  assert_int_equal(system(command), 0);
  assert_int_equal(local_close(f), SBX_OK);
  assert_int_equal(local_count_entries(f->base), 0);
}

/* ---- files ---- */

static void test_files_and_commands_share_the_workspace(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char path[256];
  assert_int_equal(local_write(f, &r, "a/rel.txt", LIT("x\0y\377")), SBX_OK);
  local_result_free(&r);
  local_assert_shell(f, "wc -c < a/rel.txt; echo z >> a/rel.txt", 0, "4\n");
  snprintf(path, sizeof path, "%s/a/rel.txt", sbx_sandbox_id(f->sb));
  assert_int_equal(local_read(f, &r, path), SBX_OK);
  assert_slice(sbx_buf_slice(&r.output), LIT("x\0y\377z\n"));
  local_result_free(&r);
  assert_int_equal(local_read(f, &r, "absent"), SBX_OK);
  assert_true(r.missing);
  local_result_free(&r);
  assert_int_equal(local_read(f, &r, "a"), SBX_EINVAL);
  local_result_free(&r);
  assert_int_equal(local_write(f, &r, "../x", LIT("x")), SBX_EPATH);
  assert_non_null(strstr(r.err.message, "traversal"));
  local_result_free(&r);
  assert_int_equal(local_write(f, &r, "e", LIT("")), SBX_OK);
  local_result_free(&r);
  assert_int_equal(local_list(f, &r, 2), SBX_OK);
  assert_slice(sbx_buf_slice(&r.output), LIT("a/rel.txt 6\ne 0\n"));
  local_result_free(&r);
  assert_int_equal(local_list(f, &r, 1), SBX_ETOOBIG);
  local_result_free(&r);
}

static void test_a_file_call_can_be_cancelled(void **state) {
  local_fixture *f = of(state);
  local_result r;
  local_start(f);
  local_begin_read(f, &r, "absent");
  sbx_call_cancel(r.call);
  local_await(f, &r);
  assert_int_equal(r.err.code, SBX_ECANCELED);
  local_result_free(&r);
  /* The work may end when the loop does. */
  local_begin_read(f, &r, "absent");
  local_free_sandbox(f);
  local_close_loop(f);
  assert_int_equal(r.times, 1);
  assert_int_equal(r.err.code, SBX_ECLOSED);
  local_result_free(&r);
}

/* A disk that hangs: renames, which end a write, wait for `hang`. */
static pthread_mutex_t hang = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool hung;

int renameat(int from_dir, const char *from, int to_dir, const char *to) {
  atomic_store(&hung, true);
  pthread_mutex_lock(&hang);
  pthread_mutex_unlock(&hang);
  return renameat2(from_dir, from, to_dir, to, 0);
}

static void test_a_write_that_is_stuck_can_be_cancelled(void **state) {
  local_fixture *f = of(state);
  local_result r = {0}, closed = {0};
  sbx_err err;
  local_start(f);
  pthread_mutex_lock(&hang);
  atomic_store(&hung, false);
  assert_int_equal(sbx_sandbox_write(f->sb, LIT("a"), LIT("x"), note_done, &r, &r.call, &err),
                   SBX_OK);
  while (!atomic_load(&hung))
    sched_yield();
  sbx_call_cancel(r.call);
  assert_int_equal(sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, note_done, &closed, &err),
                   SBX_OK);
  local_await(f, &r);
  pthread_mutex_unlock(&hang);
  assert_int_equal(r.err.code, SBX_ECANCELED);
  local_await(f, &closed);
  assert_int_equal(closed.err.code, SBX_OK);
}

/* ---- the workspace vanishes ---- */

static void test_a_removed_workspace_is_named(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char path[256];
  local_start(f);
  snprintf(path, sizeof path, "%s", sbx_sandbox_id(f->sb));
  assert_int_equal(rmdir(path), 0);
  sbx_exec_spec spec = local_shell("ls");
  local_begin(f, &r, &spec, false);
  local_await(f, &r);
  assert_int_equal(r.err.code, SBX_ELOST);
  assert_non_null(strstr(r.err.message, path));
  assert_false(r.err.may_have_run);
  local_result_free(&r);
  /* The next call starts a new one. */
  local_assert_shell(f, "ls; pwd > where", 0, "");
  assert_string_not_equal(sbx_sandbox_id(f->sb), path);
  local_assert_shell(f, "rm -r \"$PWD\"", 0, "");
  assert_int_equal(local_read(f, &r, "where"), SBX_ELOST);
  local_result_free(&r);
}

/* ---- helpers and guards that die ---- */

/* Kills it and waits for its end, but leaves it to others to collect it. */
static void kill_helper(long helper) {
  siginfo_t info;
  assert_int_equal(kill((pid_t)helper, SIGKILL), 0);
  assert_int_equal(waitid(P_PID, (id_t)helper, &info, WEXITED | WNOWAIT), 0);
}

static void test_a_new_helper_after_its_death(void **state) {
  local_fixture *f = of(state);
  long helper = local_helper(f);
  kill_helper(helper);
  local_assert_shell(f, "echo on", 0, "on\n");
  assert_int_not_equal(local_helper(f), helper);
  /* Collected by somebody else. */
  helper = local_helper(f);
  kill_helper(helper);
  assert_int_equal(waitpid((pid_t)helper, NULL, 0), helper);
  local_assert_shell(f, "echo on", 0, "on\n");
}

static void test_a_command_survives_its_helper(void **state) {
  local_fixture *f = of(state);
  local_result r;
  long helper = local_helper(f);
  sbx_exec_spec spec = local_shell("echo ready; while [ ! -e go ]; do sleep 0.01; done; exit 4");
  local_begin(f, &r, &spec, true);
  local_await_output(f, &r, "ready\n");
  kill_helper(helper);
  local_assert_shell(f, "touch go", 0, "");
  local_await(f, &r);
  assert_int_equal(r.err.code, SBX_OK);
  assert_int_equal(r.exec.exit_code, 4);
  local_result_free(&r);
}

static void test_a_dead_guard_is_no_exit(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char path[128];
  int fd = local_make_pipe(f, path, sizeof path);
  sbx_env_var var = {LIT("P"), sbx_slice_str(path)};
  sbx_exec_spec spec = local_shell("exec 7>$P; setsid sleep 300 & echo hi; kill -9 $PPID; sleep 9");
  spec.env = &var;
  spec.env_count = 1;
  local_begin(f, &r, &spec, false);
  local_await(f, &r);
  assert_int_equal(r.err.code, SBX_EPROTO);
  assert_true(r.err.may_have_run);
  local_result_free(&r);
  local_await_pipe_end(fd, path);
  local_assert_shell(f, "echo on", 0, "on\n");
}

/* The number of our pidfd of the helper, -1 where there is none. */
static int find_pidfd(void) {
  char name[64], target[64];
  for (int fd = 3; fd < 256; fd++) {
    snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    ssize_t n = readlink(name, target, sizeof target - 1);
    target[n > 0 ? n : 0] = '\0';
    if (strstr(target, "pidfd") != NULL)
      return fd;
  }
  return -1;
}

static void note_poll(uv_poll_t *handle, int status, int events) {
  (void)status;
  (void)events;
  *(bool *)handle->data = true;
  uv_poll_stop(handle);
}

/* It is killed in the end, and the number of its descriptor is left to the host at once. */
static void test_a_helper_that_is_stuck(void **state) {
  local_fixture *f = of(state);
  local_result r = {.fixture = f};
  uv_poll_t poll;
  bool taken = false, seen = false;
  int pair[2] = {-1, -1};
  assert_int_equal(kill((pid_t)local_helper(f), SIGSTOP), 0);
  int pidfd = find_pidfd();
  if (pidfd < 0)
    skip();
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  assert_int_equal(sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, note_done, &r, NULL),
                   SBX_OK);
  for (; r.times == 0; uv_run(&f->uv, UV_RUN_ONCE)) {
    if (taken || fcntl(pidfd, F_GETFD) >= 0)
      continue;
    assert_int_equal(dup2(pair[0], pidfd), pidfd);
    assert_int_equal(uv_poll_init(&f->uv, &poll, pidfd), 0);
    poll.data = &seen;
    assert_int_equal(uv_poll_start(&poll, UV_READABLE, note_poll), 0);
    taken = true;
  }
  assert_true(taken);
  assert_int_equal(r.err.code, SBX_OK);
  assert_int_equal(local_count_entries(f->base), 0);
  assert_int_equal(write(pair[1], "x", 1), 1);
  while (!seen)
    uv_run(&f->uv, UV_RUN_ONCE);
  uv_close((uv_handle_t *)&poll, NULL);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  close(pidfd);
  close(pair[0]);
  close(pair[1]);
}

/* Its socket fills up: commands wait, and may be given up meanwhile. */
static void test_a_helper_that_does_not_keep_up(void **state) {
  local_fixture *f = of(state);
  enum { COMMANDS = 320 };
  local_result *results = calloc(COMMANDS, sizeof *results);
  long helper = local_helper(f);
  assert_int_equal(kill((pid_t)helper, SIGSTOP), 0);
  sbx_exec_spec spec = local_shell("exit 3");
  spec.merge_streams = true;
  for (int i = 0; i < COMMANDS; i++)
    local_begin(f, &results[i], &spec, false);
  sbx_call_cancel(results[COMMANDS - 1].call);
  local_await(f, &results[COMMANDS - 1]);
  assert_int_equal(results[COMMANDS - 1].exec.outcome, SBX_CANCELLED);
  assert_int_equal(kill((pid_t)helper, SIGCONT), 0);
  for (int i = 0; i < COMMANDS; i++) {
    local_await(f, &results[i]);
    assert_int_equal(results[i].err.code, SBX_OK);
    assert_int_equal(results[i].exec.exit_code, i < COMMANDS - 1 ? 3 : 130);
    local_result_free(&results[i]);
  }
  free(results);
}

static void test_the_hosts_sigchld_does_not_matter(void **state) {
  local_fixture *f = of(state);
  void (*old)(int) = signal(SIGCHLD, SIG_IGN);
  local_assert_shell(f, "true; (exit 5); exit $?", 5, "");
  assert_int_equal(local_close(f), SBX_OK);
  signal(SIGCHLD, old);
  assert_int_equal(local_count_entries(f->base), 0);
}

/* ---- the host dies ---- */

static void die(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)arg;
  (void)stream;
  (void)bytes;
  kill(getpid(), SIGKILL);
}

static void no_result(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  (void)arg;
  (void)err;
  (void)result;
  _exit(1);
}

/* A process of its own that uses the library and is killed in the middle of a command. */
static void be_killed(const char *options, const char *pipe) {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_sandbox *sb;
  sbx_env_var var = {LIT("P"), sbx_slice_str(pipe)};
  sbx_exec_spec spec = local_shell("trap '' TERM HUP; exec 7>$P; setsid sleep 300 >/dev/null 2>&1 &"
                                   "(setsid sleep 300 &); echo ready; sleep 300");
  spec.env = &var;
  spec.env_count = 1;
  if (uv_loop_init(&uv) != 0 || sbx_loop_new(&loop, &uv, NULL) != SBX_OK ||
      sbx_sandbox_new(&sb, loop, "local", sbx_slice_str(options), NULL) != SBX_OK ||
      sbx_sandbox_exec(sb, &spec, die, no_result, NULL, NULL, NULL) != SBX_OK)
    _exit(2);
  uv_run(&uv, UV_RUN_DEFAULT);
  _exit(3);
}

static void test_nothing_survives_the_host(void **state) {
  local_fixture *f = of(state);
  char path[128], temp[128], options[512];
  int status = 0;
  snprintf(temp, sizeof temp, "%s/host", f->base);
  assert_int_equal(mkdir(temp, 0700), 0);
  snprintf(options, sizeof options, "{\"guardPath\":\"%s\",\"tempDir\":\"%s\"}",
           getenv("SBX_GUARD"), temp);
  int fd = local_make_pipe(f, path, sizeof path);
  pid_t pid = fork();
  if (pid == 0)
    be_killed(options, path);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  local_await_pipe_end(fd, path);
  /* The helper outlives the host for as long as it takes to remove the workspace. */
  for (int waited_ms = 0; local_count_entries(temp) != 0; waited_ms += 10) {
    assert_true(waited_ms < 30000);
    usleep(10000);
  }
  assert_int_equal(rmdir(temp), 0);
}

/* ---- the loop or the sandbox ends in the middle ---- */

static void begin_stubborn(local_fixture *f, local_result *r, const char *pipe) {
  sbx_env_var var = {LIT("P"), sbx_slice_str(pipe)};
  sbx_exec_spec spec = local_shell("trap '' TERM; exec 7>$P; setsid sleep 300 & echo ready;"
                                   "while :; do touch f$((i=i+1)); done");
  spec.env = &var;
  spec.env_count = 1;
  local_begin(f, r, &spec, true);
  local_await_output(f, r, "ready\n");
}

static void test_the_loop_ends_with_a_command(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char path[128];
  int fd = local_make_pipe(f, path, sizeof path);
  begin_stubborn(f, &r, path);
  local_free_sandbox(f);
  local_close_loop(f);
  assert_int_equal(r.times, 1);
  assert_int_equal(r.err.code, SBX_ECLOSED);
  assert_true(r.err.may_have_run);
  local_result_free(&r);
  local_await_pipe_end(fd, path);
}

static void test_the_sandbox_is_freed_with_a_command(void **state) {
  local_fixture *f = of(state);
  local_result r;
  char path[128];
  int fd = local_make_pipe(f, path, sizeof path);
  begin_stubborn(f, &r, path);
  local_free_sandbox(f);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(r.times, 1);
  assert_int_equal(r.err.code, SBX_ECLOSED);
  local_result_free(&r);
  local_await_pipe_end(fd, path);
  assert_int_equal(local_count_entries(f->base), 0);
}

static void test_the_loop_ends_during_a_start(void **state) {
  local_fixture *f = of(state);
  local_result r;
  sbx_exec_spec spec = local_shell("true");
  local_begin(f, &r, &spec, false);
  local_free_sandbox(f);
  local_close_loop(f);
  assert_int_equal(r.err.code, SBX_ECLOSED);
  assert_false(r.err.may_have_run);
  local_result_free(&r);
}

static void test_the_loop_ends_during_a_close(void **state) {
  local_fixture *f = of(state);
  local_assert_shell(f, "mkdir -p a/b/c; touch a/f", 0, "");
  assert_int_equal(sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, ignore_done, NULL, NULL),
                   SBX_OK);
  uv_run(&f->uv, UV_RUN_NOWAIT);
  local_free_sandbox(f);
  local_close_loop(f);
  assert_int_equal(local_count_entries(f->base), 0);
}

static void free_in_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  local_result *r = arg;
  (void)stream;
  (void)bytes;
  local_free_sandbox(r->fixture);
}

static void note_code(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  local_result *r = arg;
  r->times++;
  assert_null(result);
  r->err = *err;
}

static void test_the_sandbox_is_freed_by_a_listener(void **state) {
  local_fixture *f = of(state);
  local_result r = {.fixture = f};
  sbx_exec_spec spec = local_shell("yes");
  assert_int_equal(sbx_sandbox_exec(f->sb, &spec, free_in_output, note_code, &r, NULL, NULL),
                   SBX_OK);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(r.times, 1);
  assert_int_equal(r.err.code, SBX_ECLOSED);
}

/* ---- something runs out ---- */

static void test_without_descriptors(void **state) {
  local_fixture *f = of(state);
  struct rlimit old, low;
  if (getenv("SBX_VALGRIND") != NULL)
    skip(); /* it keeps a limit of its own */
  local_start(f);
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
  int highest = dup(0);
  close(highest);
  for (rlim_t room = 0; room < 9; room++) {
    local_result r;
    sbx_exec_spec spec = local_shell("exit 3");
    low = old;
    low.rlim_cur = (rlim_t)highest + room;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    local_begin(f, &r, &spec, false);
    local_await(f, &r);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    if (r.err.code != SBX_OK) {
      assert_int_equal(r.err.code, SBX_EPROVIDER);
      assert_non_null(strstr(r.err.message, "open files"));
      assert_false(r.err.may_have_run);
    } else {
      assert_int_equal(r.exec.exit_code, 3);
    }
    local_result_free(&r);
  }
  local_assert_shell(f, "exit 4", 4, "");
}

/* Results of this test: whatever fails must be an error that says so, or not matter. */
static void assert_ok_or_nomem(const local_result *r) {
  assert_int_equal(r->times, 1);
  if (r->err.code != SBX_OK)
    assert_int_equal(r->err.code, SBX_ENOMEM);
}

static void exec_cb(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  local_result *r = arg;
  r->times++;
  if (err != NULL)
    r->err = *err;
  else
    assert_int_equal(result->exit_code, 3);
}

static void done_cb(void *arg, const sbx_err *err) {
  local_result *r = arg;
  r->times++;
  if (err != NULL)
    r->err = *err;
}

static void read_cb(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  (void)bytes;
  done_cb(arg, err);
}

static void list_cb(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count) {
  (void)entries;
  (void)count;
  done_cb(arg, err);
}

static void whole_life(local_fixture *f) {
  local_result r[5];
  memset(r, 0, sizeof r);
  sbx_env_var var = {LIT("A"), LIT("b")};
  sbx_exec_spec spec = local_shell("echo out; echo err >&2; exit 3");
  spec.env = &var;
  spec.env_count = 1;
  int rc[5];
  rc[0] = sbx_sandbox_write(f->sb, LIT("a/b"), LIT("x"), done_cb, &r[0], NULL, NULL);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  rc[1] = sbx_sandbox_exec(f->sb, &spec, NULL, exec_cb, &r[1], NULL, NULL);
  rc[2] = sbx_sandbox_read(f->sb, LIT("a/b"), 0, read_cb, &r[2], NULL, NULL);
  rc[3] = sbx_sandbox_list(f->sb, 10, list_cb, &r[3], NULL, NULL);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  rc[4] = sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, done_cb, &r[4], NULL);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  for (int i = 0; i < 5; i++) {
    if (rc[i] == SBX_OK)
      assert_ok_or_nomem(&r[i]);
    else
      assert_int_equal(rc[i], SBX_ENOMEM);
  }
}

static void test_each_allocation_may_fail(void **state) {
  local_fixture *f = of(state);
  for (int sticky = 0; sticky < 2; sticky++) {
    bool failed = true;
    for (size_t n = 1; failed; n++) {
      sbx_err err;
      local_free_sandbox(f);
      uv_run(&f->uv, UV_RUN_DEFAULT);
      size_t live = sbx_alloc_live(), fds = local_count_fds();
      sbx_alloc_fail_at(n, sticky != 0);
      int rc = sbx_sandbox_new(&f->sb, f->loop, "local", sbx_slice_str(f->options), &err);
      if (rc == SBX_OK)
        whole_life(f);
      else
        assert_int_equal(rc, SBX_ENOMEM);
      local_free_sandbox(f);
      uv_run(&f->uv, UV_RUN_DEFAULT);
      failed = sbx_alloc_failed();
      sbx_alloc_fail_at(0, false);
      assert_int_equal(sbx_alloc_live(), live);
      assert_int_equal(local_count_fds(), fds);
      assert_int_equal(local_count_entries(f->base), 0);
    }
  }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, local_setup, local_teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(test_options_are_checked),
      TEST(test_a_helper_program_that_does_not_help),
      TEST(test_directories_that_cannot_be_used),
      TEST(test_the_workspace_lives_from_start_to_close),
      TEST(test_absolute_paths_in_a_given_workspace),
      TEST(test_a_umask_that_leaves_nothing),
      TEST(test_a_given_workspace_is_kept),
      TEST(test_a_failed_removal_can_be_repeated),
      TEST(test_files_and_commands_share_the_workspace),
      TEST(test_a_file_call_can_be_cancelled),
      TEST(test_a_write_that_is_stuck_can_be_cancelled),
      TEST(test_a_removed_workspace_is_named),
      TEST(test_a_new_helper_after_its_death),
      TEST(test_a_command_survives_its_helper),
      TEST(test_a_dead_guard_is_no_exit),
      TEST(test_a_helper_that_is_stuck),
      TEST(test_a_helper_that_does_not_keep_up),
      TEST(test_the_hosts_sigchld_does_not_matter),
      TEST(test_nothing_survives_the_host),
      TEST(test_the_loop_ends_with_a_command),
      TEST(test_the_sandbox_is_freed_with_a_command),
      TEST(test_the_loop_ends_during_a_start),
      TEST(test_the_loop_ends_during_a_close),
      TEST(test_the_sandbox_is_freed_by_a_listener),
      TEST(test_without_descriptors),
      TEST(test_each_allocation_may_fail),
  };
  return cmocka_run_group_tests_name("local, life", tests, NULL, NULL);
}
