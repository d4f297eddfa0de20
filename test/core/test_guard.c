/* Tests of the helper program, spoken to over its own protocol.
 *
 * A command's processes inherit its stdin, which here is the write end of a pipe: the pipe's end
 * tells the test that not one of them is left, however they left their session. */
#include "guard/protocol.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATIENCE_MS = 20000 };

static char guard_path[4096];
static char *const no_env[] = {NULL};
static char *const plain_env[] = {"PATH=/usr/local/bin:/usr/bin:/bin", NULL};

typedef struct helper {
  pid_t pid;
  int fd;
} helper;

typedef struct run {
  int control;
  int out;     /* both streams */
  int witness; /* ends when no process of the command is left */
} run;

/* ---- plumbing ---- */

static void await(int fd, short events) {
  struct pollfd p = {fd, events, 0};
  assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static void make_pipe(int fd[2]) {
  assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
}

/* False at the end of the socket. */
static bool next_frame(int fd, sbx_guard_frame *frame) {
  await(fd, POLLIN);
  ssize_t n = recv(fd, frame, sizeof *frame, MSG_WAITALL);
  if (n <= 0)
    return false;
  assert_int_equal(n, sizeof *frame);
  return true;
}

static void assert_frame(int fd, sbx_guard_kind kind, int value, int detail, unsigned left) {
  sbx_guard_frame frame;
  assert_true(next_frame(fd, &frame));
  assert_int_equal(frame.kind, kind);
  assert_int_equal(frame.value, value);
  assert_int_equal(frame.detail, detail);
  assert_int_equal(frame.left, left);
}

static void assert_end(int fd) {
  sbx_guard_frame frame;
  assert_false(next_frame(fd, &frame));
}

static void assert_witness_ends(int fd) {
  char byte;
  await(fd, POLLIN);
  assert_int_equal(read(fd, &byte, 1), 0);
}

typedef struct directory {
  const char *name;
  int root;
  int parent;
} directory;

/* `own` is what it is to remove; `out` becomes its standard output, which ends with it. */
static helper start_helper_of(const directory *own, int out) {
  int fd[2];
  helper h;
  char *argv[] = {guard_path, own != NULL ? (char *)(uintptr_t)own->name : NULL, NULL};
  posix_spawn_file_actions_t actions;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
  int theirs = fcntl(fd[1], F_DUPFD_CLOEXEC, 10);
  close(fd[1]);
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, SBX_GUARD_SOCKET_FD);
  if (own != NULL) {
    posix_spawn_file_actions_adddup2(&actions, out, 1);
    posix_spawn_file_actions_adddup2(&actions, own->root, SBX_GUARD_ROOT_FD);
    posix_spawn_file_actions_adddup2(&actions, own->parent, SBX_GUARD_PARENT_FD);
  }
  posix_spawnattr_t attr;
  posix_spawnattr_init(&attr);
  /* As the host does it: what the tests were started with, nohup for one, is not inherited. */
  sigset_t all, none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attr, &all);
  posix_spawnattr_setsigmask(&attr, &none);
  posix_spawnattr_setflags(
      &attr, (short)(POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK));
  assert_int_equal(posix_spawn(&h.pid, guard_path, &actions, &attr, argv, no_env), 0);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  h.fd = fd[0];
  assert_frame(h.fd, SBX_GUARD_HELLO, 0, 0, 0);
  return h;
}

static helper start_helper(void) {
  return start_helper_of(NULL, -1);
}

static int reap(helper *h) {
  int status = -1;
  assert_int_equal(waitpid(h->pid, &status, 0), h->pid);
  return status;
}

static void stop_helper(helper *h) {
  close(h->fd);
  int status = reap(h);
  assert_true(WIFEXITED(status));
  assert_int_equal(WEXITSTATUS(status), 0);
}

static int make_spec(char *const *argv, char *const *env, unsigned magic) {
  sbx_guard_spec head = {magic, 0, 0, 0, 0};
  int fd = memfd_create("spec", MFD_CLOEXEC);
  assert_true(fd >= 0);
  while (argv[head.argc] != NULL)
    head.argc++;
  while (env[head.envc] != NULL)
    head.envc++;
  assert_int_equal(write(fd, &head, sizeof head), sizeof head);
  for (unsigned i = 0; i < head.argc; i++)
    assert_true(write(fd, argv[i], strlen(argv[i]) + 1) > 0);
  for (unsigned i = 0; i < head.envc; i++)
    assert_true(write(fd, env[i], strlen(env[i]) + 1) > 0);
  return fd;
}

static void send_request(const helper *h, const int *fds, size_t count, unsigned magic) {
  sbx_guard_request request = {magic, (uint32_t)count, 0};
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof(int) * 16)];
  } control;
  memset(&control, 0, sizeof control);
  struct iovec part = {&request, sizeof request};
  struct msghdr msg = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = control.space,
                       .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
  struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
  cmsg->cmsg_level = SOL_SOCKET;
  cmsg->cmsg_type = SCM_RIGHTS;
  cmsg->cmsg_len = CMSG_LEN(sizeof(int) * count);
  memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * count);
  assert_int_equal(sendmsg(h->fd, &msg, MSG_NOSIGNAL), sizeof request);
}

/* Sends a whole request. `cwd` and `script` may be -1. */
static run start_run(const helper *h, int spec, int cwd, int script) {
  int control[2], out[2], witness[2];
  run r;
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
  make_pipe(out);
  make_pipe(witness);
  int here = cwd >= 0 ? cwd : open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int fds[] = {spec, control[1], witness[1], out[1], out[1], here, script};
  send_request(h, fds, script >= 0 ? 7 : 6, SBX_GUARD_MAGIC);
  close(spec);
  close(control[1]);
  close(out[1]);
  close(witness[1]);
  if (script >= 0)
    close(script);
  close(here);
  r.control = control[0];
  r.out = out[0];
  r.witness = witness[0];
  return r;
}

static run start(const helper *h, char *const *argv, char *const *env) {
  return start_run(h, make_spec(argv, env, SBX_GUARD_MAGIC), -1, -1);
}

static run start_shell(const helper *h, const char *text) {
  char *argv[] = {"/bin/sh", "-c", (char *)(uintptr_t)text, NULL};
  return start(h, argv, plain_env);
}

/* Reads until the end of the pipe. */
static void assert_output(const run *r, const char *expected) {
  char text[4096];
  size_t len = 0;
  for (;;) {
    await(r->out, POLLIN);
    ssize_t n = read(r->out, text + len, sizeof text - 1 - len);
    assert_true(n >= 0);
    if (n == 0)
      break;
    len += (size_t)n;
  }
  text[len] = '\0';
  assert_string_equal(text, expected);
}

/* Waits until the command has written a line, and returns it without its end. */
static void read_line(const run *r, char *line, size_t size) {
  size_t len = 0;
  for (;;) {
    assert_true(len < size);
    await(r->out, POLLIN);
    assert_int_equal(read(r->out, line + len, 1), 1);
    if (line[len] == '\n')
      break;
    len++;
  }
  line[len] = '\0';
}

static void order(const run *r, char what) {
  assert_int_equal(send(r->control, &what, 1, MSG_NOSIGNAL), 1);
}

static void close_run(run *r) {
  close(r->control);
  close(r->out);
  close(r->witness);
}

/* A guard that was stopped by its command is sent on, or ended, by the helper. */
static void test_a_stopped_guard_does_not_outlive_the_helper(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, "kill -STOP $PPID; setsid sleep 300 & echo stopped; sleep 300");
  read_line(&r, line, sizeof line);
  assert_string_equal(line, "stopped");
  close(r.control);
  stop_helper(&h);
  assert_witness_ends(r.witness);
  close(r.out);
  close(r.witness);
}

/* The helper was slow, and the host has given up meanwhile. */
static void test_what_was_called_off_does_not_start(void **state) {
  helper h = start_helper();
  (void)state;
  assert_int_equal(kill(h.pid, SIGSTOP), 0);
  run r = start_shell(&h, "echo ran");
  order(&r, SBX_GUARD_ORDER_TERM);
  run other = start_shell(&h, "echo ran");
  close(other.control);
  assert_int_equal(kill(h.pid, SIGCONT), 0);
  assert_frame(r.control, SBX_GUARD_FAILED, ECANCELED, SBX_GUARD_STEP_REQUEST, 0);
  assert_end(r.control);
  assert_output(&r, "");
  assert_output(&other, "");
  close_run(&r);
  close(other.out);
  close(other.witness);
  stop_helper(&h);
}

/* ---- ends ---- */

static void test_reports_how_a_command_ended(void **state) {
  helper h = start_helper();
  run r = start_shell(&h, "echo out; echo err >&2; exit 3");
  (void)state;
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, 3, 0, 0);
  assert_end(r.control);
  assert_output(&r, "out\nerr\n");
  close_run(&r);
  r = start_shell(&h, "kill -USR1 $$");
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, SIGUSR1, 1, 0);
  assert_end(r.control);
  close_run(&r);
  stop_helper(&h);
}

static void assert_ends_at_once(const helper *h, char *const *argv, int code, const char *output) {
  run r = start(h, argv, plain_env);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, code, 0, 0);
  assert_end(r.control);
  assert_output(&r, output);
  close_run(&r);
}

static void test_missing_programs_end_as_in_a_shell(void **state) {
  helper h = start_helper();
  char file[] = "/tmp/sbx-test-XXXXXX";
  int fd = mkstemp(file);
  char expected[128];
  (void)state;
  assert_ends_at_once(&h, (char *[]){"nosuchcmd_zz", "-x", NULL}, 127, "nosuchcmd_zz: not found\n");
  assert_ends_at_once(&h, (char *[]){"/no/such", NULL}, 127, "/no/such: not found\n");
  assert_ends_at_once(&h, (char *[]){"/etc/passwd/x", NULL}, 127, "/etc/passwd/x: not found\n");
  assert_ends_at_once(&h, (char *[]){"", NULL}, 127, ": not found\n");
  assert_ends_at_once(&h, (char *[]){"/etc", NULL}, 126, "/etc: permission denied\n");
  snprintf(expected, sizeof expected, "%s: permission denied\n", file);
  assert_ends_at_once(&h, (char *[]){file, NULL}, 126, expected);
  assert_int_equal(write(fd, "no program", 10), 10);
  fchmod(fd, 0755);
  close(fd);
  snprintf(expected, sizeof expected, "%s: cannot execute\n", file);
  assert_ends_at_once(&h, (char *[]){file, NULL}, 126, expected);
  unlink(file);
  stop_helper(&h);
}

static void test_searches_the_path_of_the_command(void **state) {
  helper h = start_helper();
  char dir[] = "/tmp/sbx-test-XXXXXX";
  char file[64], path[128];
  (void)state;
  assert_non_null(mkdtemp(dir));
  snprintf(file, sizeof file, "%s/tool_zz", dir);
  snprintf(path, sizeof path, "PATH=/etc/passwd:/no/such:%s", dir);
  int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  assert_int_equal(dprintf(fd, "#!/bin/sh\necho found $1\n"), 24);
  close(fd);
  char *env[] = {path, NULL};
  run r = start(&h, (char *[]){"tool_zz", "it", NULL}, env);
  assert_output(&r, "tool_zz: permission denied\n");
  close_run(&r);
  chmod(file, 0755);
  r = start(&h, (char *[]){"tool_zz", "it", NULL}, env);
  assert_output(&r, "found it\n");
  close_run(&r);
  /* Without a PATH there is a usual one. */
  r = start(&h, (char *[]){"echo", "hi", NULL}, no_env);
  assert_output(&r, "hi\n");
  close_run(&r);
  unlink(file);
  rmdir(dir);
  stop_helper(&h);
}

static void test_failures_before_the_command_runs(void **state) {
  helper h = start_helper();
  char *argv[] = {"true", NULL, NULL};
  (void)state;
  run r =
      start_run(&h, make_spec(argv, no_env, SBX_GUARD_MAGIC), open("/etc/passwd", O_RDONLY), -1);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_FAILED, ENOTDIR, SBX_GUARD_STEP_CWD, 0);
  assert_end(r.control);
  close_run(&r);

  argv[1] = calloc(1, 300000);
  memset(argv[1], 'x', 299999);
  r = start(&h, argv, no_env);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_FAILED, E2BIG, SBX_GUARD_STEP_EXEC, 0);
  close_run(&r);
  free(argv[1]);
  stop_helper(&h);
}

static void test_refuses_a_malformed_spec(void **state) {
  helper h = start_helper();
  sbx_guard_spec heads[] = {{SBX_GUARD_MAGIC, 0, 0, 0, 0},
                            {SBX_GUARD_MAGIC, 3, 0, 0, 0},
                            {SBX_GUARD_MAGIC, 1, 1, 2, 0},
                            {SBX_GUARD_MAGIC, UINT32_MAX, UINT32_MAX, 1, 0},
                            {1, 1, 0, 0, 0}};
  (void)state;
  for (size_t i = 0; i <= sizeof heads / sizeof *heads; i++) {
    int fd = memfd_create("spec", MFD_CLOEXEC);
    if (i < sizeof heads / sizeof *heads) {
      assert_int_equal(write(fd, &heads[i], sizeof heads[i]), sizeof heads[i]);
      assert_int_equal(write(fd, "true\0open", 9), 9);
    }
    run r = start_run(&h, fd, -1, -1);
    assert_frame(r.control, SBX_GUARD_FAILED, EINVAL, SBX_GUARD_STEP_REQUEST, 0);
    assert_end(r.control);
    close_run(&r);
  }
  stop_helper(&h);
}

static void test_a_foreign_request_ends_the_helper(void **state) {
  int fds[6];
  (void)state;
  for (int i = 0; i < 6; i++)
    fds[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
  helper h = start_helper();
  send_request(&h, fds, 6, 1);
  assert_end(h.fd);
  stop_helper(&h);
  h = start_helper();
  send_request(&h, fds, 2, SBX_GUARD_MAGIC);
  assert_end(h.fd);
  stop_helper(&h);
  h = start_helper();
  assert_int_equal(send(h.fd, "GET / HTTP", 10, MSG_NOSIGNAL), 10);
  assert_end(h.fd);
  stop_helper(&h);
  for (int i = 0; i < 6; i++)
    close(fds[i]);
}

/* ---- what a command gets ---- */

static void test_the_command_gets_exactly_what_was_sent(void **state) {
  helper h = start_helper();
  char *env[] = {"A=1 2", "B=", "C=x=y", NULL};
  (void)state;
  run r = start(&h, (char *[]){"env", NULL}, env);
  assert_output(&r, "A=1 2\nB=\nC=x=y\n");
  close_run(&r);
  r = start(&h, (char *[]){"printf", "[%s]", "", " a  b ", "$HOME", NULL}, no_env);
  assert_output(&r, "[][ a  b ][$HOME]");
  close_run(&r);
  r = start_run(&h, make_spec((char *[]){"pwd", NULL}, plain_env, SBX_GUARD_MAGIC),
                open("/usr/bin", O_PATH | O_DIRECTORY | O_CLOEXEC), -1);
  assert_output(&r, "/usr/bin\n");
  close_run(&r);
  stop_helper(&h);
}

static void test_the_command_gets_no_other_descriptors(void **state) {
  int extra = open("/dev/null", O_RDONLY); /* the helper inherits it, nobody else */
  helper h = start_helper();
  (void)state;
  run r = start(&h, (char *[]){"ls", "/proc/self/fd", NULL}, plain_env);
  assert_output(&r, "0\n1\n2\n3\n"); /* 3 is ls reading the folder */
  close_run(&r);
  /* Whatever number the script arrives under. */
  for (int i = 0; i < 3; i++) {
    int script = memfd_create("script", MFD_CLOEXEC);
    assert_int_equal(dprintf(script, "echo script"), 11);
    char *argv[] = {"sh", "-c", "cd /proc/self/fd && ls; . /dev/fd/9", NULL};
    r = start_run(&h, make_spec(argv, plain_env, SBX_GUARD_MAGIC), -1, script);
    assert_output(&r, "0\n1\n2\n9\nscript\n");
    close_run(&r);
  }
  stop_helper(&h);
  close(extra);
}

static void test_the_command_leads_a_clean_session(void **state) {
  helper h = start_helper();
  (void)state;
  run r = start_shell(&h, "set -- $(cut -d' ' -f1,5,6,7 /proc/$$/stat);"
                          "test $1 = $2 && test $1 = $3 && echo leader tty $4;"
                          "sed -n 's/^Sig\\(Blk\\|Ign\\):.//p' /proc/self/status");
  /* Two signals of the C library's own cannot be reset; the bits behind SIGSYS are not looked at.
   */
  char line[64];
  read_line(&r, line, sizeof line);
  assert_string_equal(line, "leader tty 0");
  for (int i = 0; i < 2; i++) {
    read_line(&r, line, sizeof line);
    assert_int_equal(strtoull(line, NULL, 16) & 0x7fffffff, 0);
  }
  close_run(&r);
  stop_helper(&h);
}

/* ---- what is left of a command ---- */

static void assert_killed_after_the_end(const helper *h, const char *text) {
  run r = start_shell(h, text);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, 0, 0, 1);
  order(&r, SBX_GUARD_ORDER_KILL);
  sbx_guard_frame frame;
  assert_true(next_frame(r.control, &frame));
  assert_int_equal(frame.kind, SBX_GUARD_GONE);
  assert_true(frame.value > 0);
  assert_end(r.control);
  assert_witness_ends(r.witness);
  close_run(&r);
}

static void test_kills_what_outlives_the_command(void **state) {
  helper h = start_helper();
  (void)state;
  /* `<&0`: a shell without job control gives a background command /dev/null otherwise. */
  assert_killed_after_the_end(&h, "sleep 300 <&0 & sleep 300 <&0 &");
  assert_killed_after_the_end(&h, "setsid sleep 300 <&0 >/dev/null 2>&1 &");
  assert_killed_after_the_end(
      &h, "(setsid sh -c 'trap \"\" TERM INT HUP; sleep 300 <&0; true' <&0 &) <&0");
  stop_helper(&h);
}

static void test_sees_the_rest_end_by_itself(void **state) {
  helper h = start_helper();
  char text[128];
  (void)state;
  char fifo[] = "/tmp/sbx-test-XXXXXX";
  assert_non_null(mkdtemp(fifo));
  snprintf(text, sizeof text, "mkfifo %s/f; cat %s/f & echo ready", fifo, fifo);
  run r = start_shell(&h, text);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, 0, 0, 1);
  snprintf(text, sizeof text, "%s/f", fifo);
  int fd = open(text, O_WRONLY | O_CLOEXEC);
  assert_int_equal(write(fd, "late\n", 5), 5);
  close(fd);
  assert_frame(r.control, SBX_GUARD_GONE, 0, 0, 0);
  assert_end(r.control);
  assert_output(&r, "ready\nlate\n");
  close_run(&r);
  unlink(text);
  rmdir(fifo);
  stop_helper(&h);
}

static void test_term_asks_and_kill_ends(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, "trap 'echo bye; exit 9' TERM; echo ready; while :; do :; done");
  read_line(&r, line, sizeof line);
  order(&r, SBX_GUARD_ORDER_TERM);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, 9, 0, 0);
  assert_output(&r, "bye\n");
  close_run(&r);

  r = start_shell(&h, "trap '' TERM INT HUP; echo ready; while :; do sleep 0.01; done");
  read_line(&r, line, sizeof line);
  order(&r, SBX_GUARD_ORDER_TERM);
  order(&r, SBX_GUARD_ORDER_KILL);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, SIGKILL, 1, 0);
  assert_end(r.control);
  assert_witness_ends(r.witness);
  close_run(&r);

  /* TERM wakes what has stopped itself. */
  r = start_shell(&h, "echo ready; kill -STOP $$");
  read_line(&r, line, sizeof line);
  order(&r, SBX_GUARD_ORDER_TERM);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_true(next_frame(r.control, &(sbx_guard_frame){0}));
  assert_witness_ends(r.witness);
  close_run(&r);
  stop_helper(&h);
}

static void test_kills_many_that_left_the_session(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, "trap '' TERM; i=0; while [ $i -lt 60 ]; do"
                          " setsid sh -c 'sleep 300 <&0 & sleep 300' <&0 & i=$((i+1)); done;"
                          " echo ready; wait");
  read_line(&r, line, sizeof line);
  order(&r, SBX_GUARD_ORDER_KILL);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, SIGKILL, 1, 0);
  assert_witness_ends(r.witness);
  close_run(&r);
  stop_helper(&h);
}

static void test_collects_orphans_while_the_command_runs(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r =
      start_shell(&h, "i=0; while [ $i -lt 30 ]; do (true &); i=$((i+1)); done;"
                      "while [ $(cat /proc/[0-9]*/stat 2>/dev/null | grep -c \") [A-Z] $PPID \") "
                      "-gt 1 ]; do sleep 0.02; done; echo none");
  read_line(&r, line, sizeof line);
  assert_string_equal(line, "none");
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, 0, 0, 0);
  close_run(&r);
  stop_helper(&h);
}

/* ---- sudden ends ---- */

static const char *const stubborn =
    "trap '' TERM INT HUP; setsid sleep 300 <&0 >/dev/null 2>&1 & echo $PPID;"
    "while :; do sleep 0.05; done";

static void test_the_end_of_the_control_socket_kills(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, stubborn);
  read_line(&r, line, sizeof line);
  close(r.control);
  assert_witness_ends(r.witness);
  close(r.out);
  close(r.witness);
  stop_helper(&h);
}

static void test_the_end_of_the_host_kills(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run a = start_shell(&h, stubborn), b = start_shell(&h, stubborn);
  read_line(&a, line, sizeof line);
  read_line(&b, line, sizeof line);
  close(a.control);
  close(b.control);
  stop_helper(&h);
  /* The helper waited for its guards, so there is nothing to wait for. */
  struct pollfd p[2] = {{a.witness, POLLIN, 0}, {b.witness, POLLIN, 0}};
  assert_int_equal(poll(p, 2, 0), 2);
  assert_witness_ends(a.witness);
  assert_witness_ends(b.witness);
  close(a.out);
  close(b.out);
  close(a.witness);
  close(b.witness);
}

/* ---- the sandbox's directory ---- */

enum { FIRST_FREE_FD = 20 };

/* A tree of which parts are read-only, and a link to a file beside it. */
static directory make_directory(const char *base) {
  directory d = {"own", -1, -1};
  char text[512];
  snprintf(text, sizeof text,
           "cd '%s' && : > kept && mkdir -p own/a/b && : > own/a/b/f && ln -s ../kept own/link && "
           "chmod 500 own/a/b own/a",
           base);
  assert_int_equal(system(text), 0); /* NOLINT: a fixed text */
  int parent = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int root = openat(parent, d.name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  d.parent = fcntl(parent, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
  d.root = fcntl(root, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
  close(parent);
  close(root);
  assert_true(d.parent >= 0 && d.root >= 0);
  return d;
}

static bool has(const directory *d, const char *name) {
  return faccessat(d->parent, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void end_directory(const directory *d, char *base) {
  char text[512];
  assert_true(has(d, "kept"));
  close(d->root);
  close(d->parent);
  snprintf(text, sizeof text, "chmod -R u+rwx '%s' && rm -r '%s'", base, base);
  assert_int_equal(system(text), 0); /* NOLINT: a fixed text */
}

/* A host that starts a helper and a command, and is killed. */
static _Noreturn void be_a_host(const directory *d, int out) {
  helper h = start_helper_of(d, out);
  run r = start_shell(&h, "echo x; sleep 300 & wait");
  char line[8];
  read_line(&r, line, sizeof line);
  raise(SIGKILL);
  _exit(1);
}

static void test_the_directory_goes_with_the_host(void **state) {
  char base[] = "/tmp/guard-test-XXXXXX";
  int witness[2], status;
  (void)state;
  assert_non_null(mkdtemp(base));
  directory d = make_directory(base);
  make_pipe(witness);
  pid_t host = fork();
  assert_true(host >= 0);
  if (host == 0)
    be_a_host(&d, witness[1]);
  close(witness[1]);
  assert_int_equal(waitpid(host, &status, 0), host);
  assert_int_equal(WTERMSIG(status), SIGKILL);
  assert_witness_ends(witness[0]);
  close(witness[0]);
  assert_false(has(&d, "own"));
  end_directory(&d, base);
}

/* How a helper is left by a host that lives on. */
typedef enum parting { PART_IN_ORDER, PART_WITHOUT_A_WORD, PART_WITH_NONSENSE, PART_COUNT } parting;

static void test_the_directory_of_a_living_host_stays(void **state) {
  (void)state;
  for (int way = 0; way < PART_COUNT; way++) {
    char base[] = "/tmp/guard-test-XXXXXX";
    char text = way == PART_IN_ORDER ? (char)SBX_GUARD_ORDER_CLOSE : '?';
    assert_non_null(mkdtemp(base));
    directory d = make_directory(base);
    helper h = start_helper_of(&d, 1);
    if (way != PART_WITHOUT_A_WORD)
      assert_int_equal(write(h.fd, &text, 1), 1);
    stop_helper(&h);
    assert_true(has(&d, "own/a/b/f"));
    end_directory(&d, base);
  }
}

static void test_the_helper_ends_what_a_killed_guard_left(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, stubborn);
  run other = start_shell(&h, "echo $PPID; exec sleep 300");
  read_line(&r, line, sizeof line);
  kill((pid_t)strtol(line, NULL, 10), SIGKILL);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_end(r.control);
  assert_witness_ends(r.witness);
  close_run(&r);
  /* Other commands go on. */
  read_line(&other, line, sizeof line);
  order(&other, SBX_GUARD_ORDER_TERM);
  assert_frame(other.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(other.control, SBX_GUARD_EXITED, SIGTERM, 1, 0);
  close_run(&other);
  stop_helper(&h);
}

static void test_a_command_outlives_its_helper(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, "echo ready; exec sleep 300");
  read_line(&r, line, sizeof line);
  kill(h.pid, SIGKILL);
  reap(&h);
  order(&r, SBX_GUARD_ORDER_TERM);
  assert_frame(r.control, SBX_GUARD_STARTED, 0, 0, 0);
  assert_frame(r.control, SBX_GUARD_EXITED, SIGTERM, 1, 0);
  close_run(&r);
  close(h.fd);
}

static void test_the_command_goes_with_helper_and_guard(void **state) {
  helper h = start_helper();
  char line[64];
  (void)state;
  run r = start_shell(&h, "echo $PPID; exec sleep 300");
  read_line(&r, line, sizeof line);
  kill(h.pid, SIGKILL);
  reap(&h);
  kill((pid_t)strtol(line, NULL, 10), SIGKILL);
  assert_witness_ends(r.witness);
  close_run(&r);
  close(h.fd);
}

static int run_all(const char *name) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_a_stopped_guard_does_not_outlive_the_helper),
      cmocka_unit_test(test_what_was_called_off_does_not_start),
      cmocka_unit_test(test_reports_how_a_command_ended),
      cmocka_unit_test(test_missing_programs_end_as_in_a_shell),
      cmocka_unit_test(test_searches_the_path_of_the_command),
      cmocka_unit_test(test_failures_before_the_command_runs),
      cmocka_unit_test(test_refuses_a_malformed_spec),
      cmocka_unit_test(test_a_foreign_request_ends_the_helper),
      cmocka_unit_test(test_the_command_gets_exactly_what_was_sent),
      cmocka_unit_test(test_the_command_gets_no_other_descriptors),
      cmocka_unit_test(test_the_command_leads_a_clean_session),
      cmocka_unit_test(test_kills_what_outlives_the_command),
      cmocka_unit_test(test_sees_the_rest_end_by_itself),
      cmocka_unit_test(test_term_asks_and_kill_ends),
      cmocka_unit_test(test_kills_many_that_left_the_session),
      cmocka_unit_test(test_collects_orphans_while_the_command_runs),
      cmocka_unit_test(test_the_end_of_the_control_socket_kills),
      cmocka_unit_test(test_the_end_of_the_host_kills),
      cmocka_unit_test(test_the_directory_goes_with_the_host),
      cmocka_unit_test(test_the_directory_of_a_living_host_stays),
      cmocka_unit_test(test_the_helper_ends_what_a_killed_guard_left),
      cmocka_unit_test(test_a_command_outlives_its_helper),
      cmocka_unit_test(test_the_command_goes_with_helper_and_guard),
  };
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

/* With "scan": the same for a helper that looks for its children through /proc. */
int main(int argc, char **argv) {
  const char *path = getenv("SBX_GUARD");
  bool scan = argc > 1 && strcmp(argv[1], "scan") == 0;
  if (path == NULL) {
    fputs("SBX_GUARD must name the helper program\n", stderr);
    return 1;
  }
  snprintf(guard_path, sizeof guard_path, "%s%s", path, scan ? "_scan" : "");
  return run_all(scan ? "guard, scanning" : "guard");
}
