/* input.c - what a running command is given: standard input through a pipe, signals by its guard.
 *
 * Invariant: an op of these ends no later than its command's, and once; the pipe is closed with the
 * last of what was written in it, so that the command reads all of it and then the end. */
#include "providers/local/input.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/os.h"
#include "providers/local/local.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { TURN_BYTES = 256 * 1024 }; /* written before others get their turn */

static const char end_of_file = 4; /* what Ctrl-D writes */

struct sbx__local_give {
  sbx_op op;
  sbx__local_input *input; /* NULL: it is over */
  sbx_slice left;
  int number; /* of a signal; 0: a size */
  sbx_tty_size size;
};

static void finish(sbx__local_give_op *give, const sbx_err *err) {
  sbx__local_input *input = give->input;
  if (input == NULL)
    return;
  if (input->writing == give) {
    input->writing = NULL;
    sbx_watch_stop(input->watch);
    input->watch = NULL;
  }
  if (input->signalling == give)
    input->signalling = NULL;
  give->input = NULL;
  sbx_op_finish(&give->op, err);
}

static void fail(sbx__local_give_op *give, int code, const char *text) {
  sbx_err err;
  sbx_err_set(&err, code, "%s", text);
  finish(give, &err);
}

static void abort_give(sbx_op *op, int reason) {
  fail((sbx__local_give_op *)(void *)op, reason, "cancelled");
}

static void destroy_give(sbx_op *op) {
  sbx_free(op);
}

static const sbx_op_class give_class = {"local input", abort_give, destroy_give};

/* ---- signals -------------------------------------------------------------------------------- */

static int number_of(const char *name) {
#define NUMBER(known)                                                                              \
  if (strcmp(name, #known) == 0)                                                                   \
    return known;
  NUMBER(SIGHUP)
  NUMBER(SIGINT)
  NUMBER(SIGQUIT)
  NUMBER(SIGKILL)
  NUMBER(SIGUSR1)
  NUMBER(SIGUSR2)
  NUMBER(SIGTERM)
  NUMBER(SIGCONT)
  NUMBER(SIGSTOP)
#undef NUMBER
  return 0;
}

/* 0 or an errno value. */
static int set_size(int fd, sbx_tty_size size) {
  struct winsize window = {.ws_col = size.columns, .ws_row = size.rows};
  return ioctl(fd, TIOCSWINSZ, &window) == 0 ? 0 : errno;
}

static void send_signal(sbx__local_input *input) {
  sbx__local_give_op *give = input->signalling;
  int error = give->number != 0 ? input->send_signal(input->arg, give->number)
                                : set_size(input->fd, give->size);
  sbx_err err;
  if (error == EPIPE || error == ECONNRESET || error == EBADF)
    fail(give, SBX_ECLOSED, "the command has ended");
  else if (error != 0)
    finish(give, (sbx__local_sys_fail(&err, "send the signal", error), &err));
  else
    finish(give, NULL);
}

/* ---- standard input ------------------------------------------------------------------------- */

/* write() to a pipe, whose reader may be gone: the host of this library need not ignore SIGPIPE. */
static ssize_t write_pipe(int fd, sbx_slice bytes) {
#ifdef __linux__
  sigset_t pipe_signal, pending, before;
  const struct timespec now = {0, 0};
  sigemptyset(&pipe_signal);
  sigaddset(&pipe_signal, SIGPIPE);
  sigpending(&pending);
  pthread_sigmask(SIG_BLOCK, &pipe_signal, &before);
  ssize_t n = write(fd, bytes.ptr, bytes.len);
  int error = errno;
  if (n < 0 && error == EPIPE && !sigismember(&pending, SIGPIPE))
    sigtimedwait(&pipe_signal, NULL, &now);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = error;
  return n;
#else
  return write(fd, bytes.ptr, bytes.len); /* F_SETNOSIGPIPE is set */
#endif
}

static void on_writable(void *arg, int events);

static void wait_for_room(sbx__local_input *input) {
  sbx_err err;
  if (input->watch != NULL)
    sbx_watch_set(input->watch, SBX_WRITABLE);
  else if (sbx_watch_start(&input->watch, input->loop, input->fd, SBX_WRITABLE, on_writable, input,
                           &err) != SBX_OK)
    finish(input->writing, &err);
}

static void write_more(sbx__local_input *input) {
  sbx__local_give_op *give = input->writing;
  size_t turn = TURN_BYTES;
  while (give->left.len > 0 && turn > 0) {
    ssize_t n = write_pipe(input->fd, give->left);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      break;
    if (n < 0) {
      fail(give, SBX_ECLOSED,
           "the command has closed its standard input; a part of this may have been read");
      return;
    }
    give->left = sbx_slice_skip(give->left, (size_t)n);
    turn = (size_t)n < turn ? turn - (size_t)n : 0;
  }
  if (give->left.len == 0)
    finish(give, NULL);
  else
    wait_for_room(input);
}

/* An error is told by the next write. */
static void on_writable(void *arg, int events) {
  (void)events;
  write_more(arg);
}

/* ---- all of it ------------------------------------------------------------------------------ */

void sbx__local_input_init(sbx__local_input *input, sbx_loop *loop,
                           int (*send)(void *arg, int number), void *arg) {
  *input = (sbx__local_input){.loop = loop, .fd = -1, .send_signal = send, .arg = arg};
}

int sbx__local_input_open(sbx__local_input *input, int *out, sbx_err *err) {
  int fd[2];
  if (sbx_os_pipe(fd) != 0)
    return sbx__local_sys_fail(err, "make a pipe", errno);
  *out = fd[0];
  input->fd = fd[1];
  fcntl(input->fd, F_SETFL, O_NONBLOCK);
#ifdef F_SETNOSIGPIPE
  fcntl(input->fd, F_SETNOSIGPIPE, 1);
#endif
  return SBX_OK;
}

/* Opens the command's end of a terminal by its name. */
static int open_slave(int master) {
  char name[64];
#ifdef __linux__
  if (ptsname_r(master, name, sizeof name) != 0)
    return -1;
#else
  const char *known = ptsname(master);
  if (known == NULL || strlen(known) >= sizeof name)
    return -1;
  memcpy(name, known, strlen(known) + 1);
#endif
  return open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
}

int sbx__local_input_open_tty(sbx__local_input *input, sbx_tty_size size, int *out, int *master,
                              sbx_err *err) {
  int fd = posix_openpt(O_RDWR | O_NOCTTY);
  if (fd < 0)
    return sbx__local_sys_fail(err, "make a terminal", errno);
  *master = fd;
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  if (grantpt(fd) != 0 || unlockpt(fd) != 0 || (*out = open_slave(fd)) < 0)
    return sbx__local_sys_fail(err, "make a terminal", errno);
  int error = set_size(fd, size);
  if (error == 0 && (input->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
    error = errno;
  input->is_tty = true;
  return error == 0 ? SBX_OK : sbx__local_sys_fail(err, "make a terminal", error);
}

void sbx__local_input_begin(sbx__local_input *input) {
  input->begun = true;
  if (input->signalling != NULL)
    send_signal(input);
}

void sbx__local_input_end(sbx__local_input *input) {
  input->over = true;
  if (input->writing != NULL)
    fail(input->writing, SBX_ECLOSED,
         "the command has ended; a part of this may have been read by it");
  if (input->signalling != NULL)
    fail(input->signalling, SBX_ECLOSED, "the command has ended");
  sbx__close_fd(&input->fd);
}

sbx_op *sbx__local_input_give(sbx__local_input *input, const sbx_input *what, sbx_op_done done,
                              void *arg) {
  sbx__local_give_op *give = sbx_calloc(1, sizeof *give);
  if (give == NULL)
    return NULL;
  give->input = input;
  sbx_op_init(&give->op, &give_class, input->loop, done, arg);
  bool needs_fd = what->kind != SBX_INPUT_SIGNAL;
  if (input->over || (needs_fd && input->fd < 0)) {
    fail(give, SBX_ECLOSED, "the command has ended, or its standard input has");
    return &give->op;
  }
  switch (what->kind) {
  case SBX_INPUT_WRITE:
    give->left = what->bytes;
    input->writing = give;
    write_more(input);
    break;
  case SBX_INPUT_END:
    if (input->is_tty) {
      give->left = sbx_slice_of(&end_of_file, 1);
      input->writing = give;
      write_more(input);
      break;
    }
    sbx__close_fd(&input->fd);
    finish(give, NULL);
    break;
  case SBX_INPUT_SIGNAL:
  case SBX_INPUT_RESIZE:
    give->number = what->kind == SBX_INPUT_SIGNAL ? number_of(what->signal) : 0;
    give->size = what->size;
    input->signalling = give;
    if (input->begun)
      send_signal(input);
    break;
  }
  return &give->op;
}
