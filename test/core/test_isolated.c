/* Tests of the first process of an isolated sandbox, spoken to over its own protocol: what it
 * refuses to hand to a command, and that its last resort is its alone. Where a machine cannot
 * isolate they are skipped, and say so. */
#include "guard/isolation.h"

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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* The last resort of the first process ends every process that it can see. */
static int no_kill(pid_t pid, int number) {
  (void)pid;
  (void)number;
  _exit(77);
}
#define kill no_kill
#include "guard/ns.c"
#include "guard/report.c"
#include "guard/system.c"
#undef kill

enum { PATIENCE_MS = 20000, HIGH_FD = 20, STDERR_END = 5, NOBODY = 65534 };

typedef struct sandbox {
  pid_t pid;
  int fd;
  char directory[32];
} sandbox;

static char guard_path[4096];

static void await(int fd) {
  struct pollfd p = {fd, POLLIN, 0};
  assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
}

static void read_whole(int fd, void *out, size_t size) {
  for (size_t have = 0; have < size;) {
    await(fd);
    ssize_t n = read(fd, (char *)out + have, size - have);
    assert_true(n > 0);
    have += (size_t)n;
  }
}

static int memory_file(const void *bytes, size_t size) {
  int fd = memfd_create("test", MFD_CLOEXEC);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, bytes, size), size);
  return fd;
}

static int high(int fd) {
  int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
  assert_true(copy >= 0);
  close(fd);
  return copy;
}

/* False when this machine cannot isolate. */
static bool start(sandbox *s) {
  struct {
    sbx_guard_setup setup;
    char name[1];
  } file = {{.magic = SBX_GUARD_MAGIC, .uid = NOBODY, .gid = NOBODY, .temp_bytes = 1 << 20}, ""};
  static sbx_guard_hello hello;
  char isolated[] = SBX_GUARD_ISOLATED;
  char *argv[] = {guard_path, isolated, NULL}, *env[] = {NULL};
  int pair[2];
  posix_spawn_file_actions_t actions;
  file.setup.required = 1U << SBX_LAYER_USERNS | 1U << SBX_LAYER_MOUNTS | 1U << SBX_LAYER_SECCOMP;
  strcpy(s->directory, "/tmp/sbx-test-XXXXXX");
  assert_non_null(mkdtemp(s->directory));
  assert_int_equal(chmod(s->directory, 0755), 0);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  int theirs = high(pair[1]);
  int root = high(open(s->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  int setup = high(memory_file(&file, sizeof file.setup + sizeof file.name));
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, theirs, SBX_GUARD_SOCKET_FD);
  posix_spawn_file_actions_adddup2(&actions, root, SBX_GUARD_ROOT_FD);
  posix_spawn_file_actions_adddup2(&actions, root, SBX_GUARD_PARENT_FD);
  posix_spawn_file_actions_adddup2(&actions, setup, SBX_GUARD_SETUP_FD);
  assert_int_equal(posix_spawn(&s->pid, guard_path, &actions, NULL, argv, env), 0);
  posix_spawn_file_actions_destroy(&actions);
  close(theirs);
  close(root);
  close(setup);
  s->fd = pair[0];
  read_whole(s->fd, &hello, sizeof hello);
  return hello.frame.kind == SBX_GUARD_HELLO;
}

static void stop(sandbox *s) {
  int status;
  close(s->fd);
  assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
  rmdir(s->directory);
}

static int make_spec(void) {
  static const char words[] = "/usr/bin/true\0" SBX_GUARD_WORKSPACE;
  char bytes[sizeof(sbx_guard_spec) + sizeof words];
  sbx_guard_spec head = {SBX_GUARD_MAGIC, 1, 0, 0, 1};
  memcpy(bytes, &head, sizeof head);
  memcpy(bytes + sizeof head, words, sizeof words);
  return memory_file(bytes, sizeof bytes);
}

/* Sends a request with `input` as the command's stdin, and its directory as a descriptor when that
 * is not -1. Both are closed. Its control socket. */
static int request(const sandbox *s, int input, int directory) {
  int control[2], null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control), 0);
  int fds[] = {make_spec(), control[1], input, null, null, directory};
  size_t count = STDERR_END + (directory >= 0);
  sbx_guard_request head = {SBX_GUARD_MAGIC, (uint32_t)count, directory < 0};
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof fds)];
  } space;
  struct iovec part = {&head, sizeof head};
  struct msghdr msg = {.msg_iov = &part,
                       .msg_iovlen = 1,
                       .msg_control = space.space,
                       .msg_controllen = CMSG_SPACE(sizeof(int) * count)};
  memset(&space, 0, sizeof space);
  struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);
  cmsg->cmsg_level = SOL_SOCKET;
  cmsg->cmsg_type = SCM_RIGHTS;
  cmsg->cmsg_len = CMSG_LEN(sizeof(int) * count);
  memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * count);
  assert_int_equal(sendmsg(s->fd, &msg, MSG_NOSIGNAL), sizeof head);
  close(fds[0]);
  close(control[1]);
  close(null);
  close(input);
  if (directory >= 0)
    close(directory);
  return control[0];
}

static void assert_refused(int control) {
  sbx_guard_frame frame;
  read_whole(control, &frame, sizeof frame);
  assert_int_equal(frame.kind, SBX_GUARD_FAILED);
  assert_int_equal(frame.value, EBADF);
  assert_int_equal(frame.detail, SBX_GUARD_STEP_REQUEST);
  close(control);
}

static void assert_runs(int control) {
  sbx_guard_frame frame;
  read_whole(control, &frame, sizeof frame);
  assert_int_equal(frame.kind, SBX_GUARD_STARTED);
  read_whole(control, &frame, sizeof frame);
  assert_int_equal(frame.kind, SBX_GUARD_EXITED);
  assert_int_equal(frame.value, 0);
  assert_int_equal(frame.detail, 0);
  close(control);
}

/* Attempt 75: from a directory a command could climb to the host's root, and a file that was opened
 * for reading can be opened once more for writing. */
static void test_nothing_of_the_host_is_handed_in(void **state) {
  sandbox s;
  (void)state;
  bool starts = start(&s);
  if (starts) {
    assert_runs(request(&s, open("/dev/null", O_RDONLY | O_CLOEXEC), -1));
    assert_refused(request(&s, open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), -1));
    assert_refused(request(&s, open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), -1));
    assert_refused(request(&s, open(guard_path, O_RDONLY | O_CLOEXEC), -1));
    assert_refused(request(&s, open("/dev/zero", O_RDONLY | O_CLOEXEC), -1));
    assert_refused(request(&s, open("/dev/null", O_RDONLY | O_CLOEXEC),
                           open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC)));
    assert_runs(request(&s, open("/dev/null", O_RDONLY | O_CLOEXEC), -1));
  }
  stop(&s);
  if (!starts) {
    print_message("unavailable here: isolation\n");
    skip();
  }
}

/* Attempt 82: anywhere but in its own namespace that call would end strangers. */
static void test_only_the_first_process_ends_all(void **state) {
  int status = 0;
  (void)state;
  assert_int_not_equal(getpid(), 1);
  pid_t pid = fork();
  if (pid == 0) {
    signal(SIGABRT, SIG_DFL);
    sbx__ns_kill_all();
    _exit(0);
  }
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFSIGNALED(status));
  assert_int_equal(WTERMSIG(status), SIGABRT);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_nothing_of_the_host_is_handed_in),
      cmocka_unit_test(test_only_the_first_process_ends_all),
  };
  const char *guard = getenv("SBX_GUARD");
  if (guard == NULL)
    return fputs("SBX_GUARD is not set\n", stderr), 1;
  snprintf(guard_path, sizeof guard_path, "%s", guard);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
