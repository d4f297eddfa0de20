/* exec.c - one command, from its request to the end of its last process.
 *
 *   SENDING --> RUNNING --------------> DRAINING --> release --> finish
 *                  \--> TERMINATING --/    \--> ENDING ---------/
 *                            \-----------------/
 *
 * The guard's EXITED says how the command ended. What it left behind may write for a short time
 * (DRAINING). Then it is released: it lives on, and its guard reads what it prints. With
 * `end_background`, and when the command was ended by us, the guard kills it (ENDING), and the op
 * finishes when the guard has seen the last process end and the pipes are empty, or when that takes
 * too long.
 *
 * Invariant: a result comes from a frame of the guard. The end of its socket without one is an
 * error, never an exit. */
#include "providers/local/input.h"
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
  DRAIN_MS = 500,             /* for output of what the command left behind */
  QUIET_MS = 150,             /* the same, when it lives on and writes nothing */
  LAST_MS = 30,               /* for what the command left behind to end, when it has no pipe */
  END_MS = 2500,              /* for the guard to kill, which takes it 2000 at most */
  RETRY_MS = 2,               /* while the helper's socket is full */
  CONTINUE_MS = 500,          /* without a sign of the command: its helper may be stopped */
  TURN_BYTES = 256 * 1024,    /* read of one pipe before others get their turn */
  DISCARD_BYTES = 1024 * 1024 /* the same for output that nobody keeps, and a pipe's largest size */
};

typedef enum phase { SENDING, RUNNING, TERMINATING, DRAINING, ENDING } phase;

typedef struct local_exec local_exec;

typedef struct pipe_end {
  local_exec *exec;
  int fd;
  sbx_watch *watch;
  sbx_stream stream;
  bool enlarged;
} pipe_end;

struct local_exec {
  sbx_op op;
  sbx_session *session; /* not touched after the finish */
  sbx_output *out;
  sbx_exec_status *status;
  sbx__command command; /* descriptors that the helper has not got yet */
  sbx__waiter waiter;   /* for a helper that is starting */
  phase phase;
  sbx_timer timer; /* of the phase */
  int control;
  sbx_watch *control_watch;
  sbx_guard_frame frame; /* the next one, of which `frame_len` bytes have come */
  size_t frame_len;
  pipe_end pipes[2];
  sbx__local_input input;
  uint64_t may_write; /* bytes, of both pipes, before it is ended */
  bool exited;
  uint64_t drain_limit_ms;
  bool ends_background; /* nothing lives on */
  bool restarted;       /* the helper, for this command */
  unsigned helper_serial;
  bool counted; /* among the helper's commands whose end was not seen */
};

static local_exec *exec_of(sbx_op *op) {
  return (local_exec *)(void *)op;
}

/* ---- finish --------------------------------------------------------------------------------- */

static void close_pipe(pipe_end *end) {
  sbx_watch_stop(end->watch);
  end->watch = NULL;
  sbx__close_fd(&end->fd);
}

static void close_control(local_exec *x) {
  sbx_watch_stop(x->control_watch);
  x->control_watch = NULL;
  sbx__close_fd(&x->control);
}

static void count_out(local_exec *x) {
  sbx_session *session = x->session;
  bool same = x->helper_serial == session->helper.serial;
  size_t *unseen = same ? &session->helper.unseen : &session->unseen_before;
  if (x->counted && *unseen > 0)
    (*unseen)--;
  x->counted = false;
}

/* To a guard that still runs, the end of its socket is the order to kill. */
static void finish(local_exec *x, const sbx_err *err) {
  if (x->status->tree_gone)
    count_out(x);
  if (x->phase == SENDING)
    sbx__session_leave(x->session, &x->waiter);
  sbx_timer_stop(&x->timer);
  sbx__local_input_end(&x->input);
  close_control(x);
  close_pipe(&x->pipes[0]);
  close_pipe(&x->pipes[1]);
  sbx__command_end(&x->command, x->exited);
  sbx_op_finish(&x->op, err);
}

static void fail(local_exec *x, int code, const char *text) {
  sbx_err err;
  sbx_err_set(&err, code, "%s", text);
  finish(x, &err);
}

static void abort_exec(sbx_op *op, int reason) {
  sbx_err err;
  sbx_err_set(&err, reason, NULL);
  finish(exec_of(op), &err);
}

static void destroy_exec(sbx_op *op) {
  sbx_free(op);
}

static const sbx_op_class exec_class = {"local exec", abort_exec, destroy_exec};

/* ---- what is left --------------------------------------------------------------------------- */

static void enter(local_exec *x, phase next, uint64_t ms) {
  x->phase = next;
  sbx_timer_start(&x->timer, ms);
}

static bool pipes_open(const local_exec *x) {
  return x->pipes[0].fd >= 0 || x->pipes[1].fd >= 0;
}

static void order(const local_exec *x, char what) {
  /* When it cannot be sent the guard is gone, and the end of the socket will tell. */
  if (x->control >= 0)
    (void)send(x->control, &what, 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void end_the_rest(local_exec *x) {
  x->ends_background = true;
  order(x, SBX_GUARD_ORDER_KILL);
  enter(x, ENDING, END_MS);
}

/* Leaves what lives on to its guard, with the pipes that it writes to. When that cannot be sent,
 * and the guard has not ended by itself, everything is ended. */
static void release(local_exec *x) {
  char what = SBX_GUARD_ORDER_RELEASE;
  int fds[2];
  size_t count = 0;
  union {
    struct cmsghdr align;
    char space[CMSG_SPACE(sizeof fds)];
  } control = {.space = {0}};
  for (int i = 0; i < 2; i++) {
    if (x->pipes[i].fd >= 0)
      fds[count++] = x->pipes[i].fd;
  }
  struct iovec part = {&what, 1};
  struct msghdr msg = {.msg_iov = &part, .msg_iovlen = 1};
  if (count > 0) {
    msg.msg_control = control.space;
    msg.msg_controllen = CMSG_SPACE(sizeof *fds * count);
    struct cmsghdr *head = CMSG_FIRSTHDR(&msg);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof *fds * count);
    memcpy(CMSG_DATA(head), fds, sizeof *fds * count);
  }
  bool sent = sendmsg(x->control, &msg, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
  x->status->background_running = sent;
  if (sent || errno == EPIPE || errno == ECONNRESET)
    finish(x, NULL);
  else
    end_the_rest(x);
}

/* Nothing of the command is left, or nobody who could end it. */
static bool guard_done(const local_exec *x) {
  return x->exited && (x->status->tree_gone || x->control < 0);
}

/* While what lives on is quiet, and for a short time at most. */
static void drain(local_exec *x, uint64_t quiet_ms) {
  uint64_t now = sbx_now_ms();
  if (x->phase != DRAINING)
    x->drain_limit_ms = now + DRAIN_MS;
  uint64_t left = x->drain_limit_ms > now ? x->drain_limit_ms - now : 0;
  enter(x, DRAINING, x->ends_background || left < quiet_ms ? left : quiet_ms);
}

/* After each event: finishes, or goes on to the phase that follows. */
static void settle(local_exec *x) {
  if (!x->exited || x->op.finished)
    return;
  bool done = guard_done(x);
  if (done && !pipes_open(x))
    finish(x, NULL);
  else if (!done && x->phase == TERMINATING)
    return; /* what the command left behind has its grace, too */
  else if (!done && !pipes_open(x) && x->ends_background && x->phase != ENDING)
    end_the_rest(x);
  else if (x->phase < DRAINING || (done && x->phase == ENDING) ||
           (!done && x->phase == DRAINING && !x->ends_background))
    drain(x, pipes_open(x) ? QUIET_MS : LAST_MS);
}

/* ---- output --------------------------------------------------------------------------------- */

/* Throws away what would only be counted. On Linux the bytes are not even copied. */
static ssize_t discard(const pipe_end *end) {
  const sbx_session *session = end->exec->session;
#ifdef __linux__
  ssize_t n = splice(end->fd, NULL, session->null_fd, NULL, DISCARD_BYTES,
                     SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
  if (n >= 0 || errno == EAGAIN || errno == EINTR)
    return n;
#endif
  return read(end->fd, session->chunk, SBX__LOCAL_CHUNK);
}

/* A larger pipe means fewer turns for each megabyte; only a command that writes much gets one. */
static void enlarge(pipe_end *end) {
#ifdef F_SETPIPE_SZ
  if (!end->enlarged)
    fcntl(end->fd, F_SETPIPE_SZ, DISCARD_BYTES);
#endif
  end->enlarged = true;
}

static void take_output(pipe_end *end, size_t len) {
  /* Out of memory loses the bytes, which are then counted as dropped. */
  sbx_output_add(end->exec->out, end->stream, sbx_slice_of(end->exec->session->chunk, len));
  if (len == SBX__LOCAL_CHUNK && end->fd >= 0)
    enlarge(end);
}

/* What nobody stops would keep this process busy for ever. */
static void count(local_exec *x, size_t bytes) {
  if (bytes <= x->may_write) {
    x->may_write -= bytes;
    return;
  }
  x->may_write = UINT64_MAX;
  if (x->exited || x->op.finished || x->phase == ENDING)
    return;
  x->status->output_exceeded = true;
  end_the_rest(x);
}

/* The listener may abort the op, which closes the pipe: look at end->fd after each step. */
static void read_pipe(pipe_end *end) {
  local_exec *x = end->exec;
  size_t left = TURN_BYTES;
  while (end->fd >= 0 && left > 0) {
    bool full = sbx_output_is_full(x->out);
    ssize_t n = full ? discard(end) : read(end->fd, x->session->chunk, SBX__LOCAL_CHUNK);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      return;
    if (n <= 0) {
      close_pipe(end);
      return;
    }
    if (full)
      sbx_output_skip(x->out, end->stream, (uint64_t)n);
    else
      take_output(end, (size_t)n);
    count(x, (size_t)n);
    left = (size_t)n < left ? left - (size_t)n : 0;
  }
}

/* Reads what has come until now, before the pipes are given up. */
static void read_rest(local_exec *x) {
  for (int i = 0; i < 2; i++) {
    for (int turn = 0; turn <= DISCARD_BYTES / TURN_BYTES && x->pipes[i].fd >= 0; turn++)
      read_pipe(&x->pipes[i]);
  }
}

/* An error pauses the watch; what it is shows in the read. */
static void resume(sbx_watch *watch, int events) {
  if (watch != NULL && (events & SBX_FAILED))
    sbx_watch_set(watch, SBX_READABLE);
}

static void on_output(void *arg, int events) {
  pipe_end *end = arg;
  read_pipe(end);
  resume(end->watch, events);
  settle(end->exec);
}

/* ---- frames of the guard -------------------------------------------------------------------- */

static const char *signal_name(int number) {
  switch (number) {
#define NAME(name)                                                                                 \
  case name:                                                                                       \
    return #name;
    NAME(SIGHUP)
    NAME(SIGINT)
    NAME(SIGQUIT)
    NAME(SIGILL)
    NAME(SIGTRAP)
    NAME(SIGABRT)
    NAME(SIGBUS)
    NAME(SIGFPE)
    NAME(SIGKILL)
    NAME(SIGUSR1)
    NAME(SIGSEGV)
    NAME(SIGUSR2)
    NAME(SIGPIPE)
    NAME(SIGALRM)
    NAME(SIGTERM)
    NAME(SIGXCPU)
    NAME(SIGXFSZ)
    NAME(SIGVTALRM)
    NAME(SIGPROF)
    NAME(SIGSYS)
#ifdef SIGPOLL
    NAME(SIGPOLL)
#endif
#ifdef SIGPWR
    NAME(SIGPWR)
#endif
#undef NAME
  default:
    return NULL;
  }
}

static void on_exited(local_exec *x) {
  sbx_exec_status *status = x->status;
  bool signalled = x->frame.detail != 0;
  x->exited = true;
  sbx__local_input_end(&x->input);
  status->outcome = signalled ? SBX_SIGNALLED : SBX_EXITED;
  status->exit_code = signalled ? 128 + x->frame.value : x->frame.value;
  status->signal_number = signalled ? x->frame.value : 0;
  status->signal_name = signalled ? signal_name(x->frame.value) : NULL;
  status->tree_gone = x->frame.left == 0;
  status->oom_killed = x->frame.oom != 0;
  status->cpu_us = x->frame.cpu_us;
  status->peak_bytes = x->frame.peak_bytes;
  /* What the command itself wrote is in the pipes by now. All of it at once: a deadline may be
   * waiting for its turn. */
  read_rest(x);
}

/* The guard could not start the command. */
static void on_failed(local_exec *x) {
  int error = x->frame.value;
  sbx_err err;
  x->status->started = false;
  x->status->tree_gone = true;
  switch ((sbx_guard_step)x->frame.detail) {
  case SBX_GUARD_STEP_CWD:
    sbx_err_set(&err, SBX_EINVAL, "cannot enter the working directory: %s" SBX__CWD_ADVICE,
                sbx_err_system(error));
    break;
  case SBX_GUARD_STEP_EXEC:
    if (error == E2BIG)
      sbx_err_set(&err, SBX_ETOOBIG,
                  "an argument or the environment of the command is too long for the system; pass "
                  "long text through stdin or a file");
    else if (error == ENAMETOOLONG || error == ELOOP)
      sbx_err_set(&err, SBX_EINVAL, "cannot run the command: its name: %s", sbx_err_system(error));
    else
      sbx__local_sys_fail(&err, "run the command", error);
    break;
  case SBX_GUARD_STEP_FORK:
    if (error == EAGAIN && x->session->helper.isolated)
      sbx_err_set(
          &err, SBX_EQUOTA,
          "an isolated sandbox runs at most 298 commands at once, or this machine has no room "
          "for more processes; wait for some to end");
    else
      sbx__local_sys_fail(&err, "start a process", error);
    break;
  case SBX_GUARD_STEP_CONFINE:
    sbx_err_set(&err, SBX_EISOLATION, "cannot isolate the command, which was not run: %s",
                sbx_err_system(error));
    break;
  case SBX_GUARD_STEP_REQUEST:
  default:
    if (error == ECANCELED)
      sbx_err_set(&err, SBX_ECANCELED, "cancelled before the command had started");
    else
      sbx__local_sys_fail(&err, "read the command in the helper process", error);
    break;
  }
  finish(x, &err);
}

static void on_frame(local_exec *x) {
  switch (x->frame.kind) {
  case SBX_GUARD_STARTED:
    x->status->started = true;
    if (x->phase == RUNNING)
      sbx_timer_stop(&x->timer);
    sbx__local_input_begin(&x->input);
    break;
  case SBX_GUARD_EXITED:
    on_exited(x);
    break;
  case SBX_GUARD_GONE:
    x->status->tree_gone = true;
    x->status->background_killed = x->frame.value > 0;
    break;
  case SBX_GUARD_FAILED:
    on_failed(x);
    break;
  default:
    fail(x, SBX_EPROTO, "the helper process sent something unknown");
    break;
  }
}

static void on_control_end(local_exec *x) {
  close_control(x);
  if (x->exited)
    return;
  /* The guard was killed. Its helper, which ends what is left, may have been stopped before. */
  sbx__helper_continue(&x->session->helper);
  if (x->session->helper.isolated && x->status->started)
    fail(
        x, SBX_EPROTO,
        "the process that watched the command in its sandbox was killed, by another command or for "
        "want of memory on this machine, and all commands of the sandbox were ended with it");
  else if (x->status->started)
    fail(x, SBX_EPROTO, "the helper process ended before the command's result was known");
  else
    fail(x, SBX_EPROTO, "the helper process ended before it had started the command");
}

static void on_control(void *arg, int events) {
  local_exec *x = arg;
  while (x->control >= 0) {
    char *at = (char *)&x->frame + x->frame_len;
    ssize_t n = recv(x->control, at, sizeof x->frame - x->frame_len, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0 && errno == EAGAIN)
      break;
    if (n <= 0) {
      on_control_end(x);
      break;
    }
    x->frame_len += (size_t)n;
    if (x->frame_len < sizeof x->frame)
      continue;
    x->frame_len = 0;
    on_frame(x);
  }
  resume(x->control_watch, events);
  settle(x);
}

/* ---- start ---------------------------------------------------------------------------------- */

static int watch_pipe(pipe_end *end, sbx_err *err) {
  return sbx_watch_start(&end->watch, end->exec->op.loop, end->fd, SBX_READABLE, on_output, end,
                         err);
}

/* Our end does not block, theirs does: the two have nothing in common but the pipe. */
static int open_pipe(local_exec *x, int number, int request_fd, sbx_err *err) {
  pipe_end *end = &x->pipes[number];
  int fd[2];
  if (sbx_os_pipe(fd) != 0)
    return sbx__local_sys_fail(err, "make a pipe", errno);
  end->fd = fd[0];
  x->command.fd[request_fd] = fd[1];
  fcntl(end->fd, F_SETFL, O_NONBLOCK);
  return watch_pipe(end, err);
}

/* A terminal stands for the input and both outputs. */
static int open_terminal(local_exec *x, sbx_tty_size size, sbx_err *err) {
  pipe_end *end = &x->pipes[SBX_STDOUT];
  int *fd = x->command.fd;
  int rc = sbx__local_input_open_tty(&x->input, size, &fd[SBX_GUARD_FD_STDIN], &end->fd, err);
  for (int i = SBX_GUARD_FD_STDOUT; rc == SBX_OK && i <= SBX_GUARD_FD_STDERR; i++) {
    fd[i] = fcntl(fd[SBX_GUARD_FD_STDIN], F_DUPFD_CLOEXEC, 0);
    if (fd[i] < 0)
      rc = sbx__local_sys_fail(err, "make a terminal", errno);
  }
  return rc == SBX_OK ? watch_pipe(end, err) : rc;
}

static int open_outputs(local_exec *x, bool merged, sbx_err *err) {
  int *fd = x->command.fd;
  int rc = open_pipe(x, SBX_STDOUT, SBX_GUARD_FD_STDOUT, err);
  if (rc == SBX_OK && !merged)
    return open_pipe(x, SBX_STDERR, SBX_GUARD_FD_STDERR, err);
  if (rc == SBX_OK) {
    fd[SBX_GUARD_FD_STDERR] = fcntl(fd[SBX_GUARD_FD_STDOUT], F_DUPFD_CLOEXEC, 0);
    if (fd[SBX_GUARD_FD_STDERR] < 0)
      rc = sbx__local_sys_fail(err, "make a pipe", errno);
  }
  return rc;
}

static int open_control(local_exec *x, sbx_err *err) {
  int pair[2];
  if (sbx_os_socketpair(pair) != 0)
    return sbx__local_sys_fail(err, "make a socket", errno);
  x->control = pair[0];
  x->command.fd[SBX_GUARD_FD_CONTROL] = pair[1];
  return sbx_watch_start(&x->control_watch, x->op.loop, x->control, SBX_READABLE, on_control, x,
                         err);
}

/* Hands the command to the helper. What a helper that has ended did not take has not run: then a
 * new one is started, once; those that come meanwhile wait for it, too. */
static int request(local_exec *x, sbx_err *err) {
  sbx_session *session = x->session;
  sbx__helper *helper = &session->helper;
  int error = 0;
  if (!sbx__session_is_starting(session)) {
    error = sbx__helper_send(helper, x->command.fd);
    if (error == EAGAIN) {
      enter(x, SENDING, RETRY_MS);
      return SBX_OK;
    }
    if (error == 0) {
      helper->unseen++;
      x->helper_serial = helper->serial;
      x->counted = true;
      enter(x, RUNNING, CONTINUE_MS);
      sbx__command_close(&x->command);
      return SBX_OK;
    }
    if (error != EPIPE || x->restarted)
      return sbx__local_sys_fail(err, "reach the helper process", error);
    x->restarted = true;
    int rc = sbx__session_start(session, err);
    if (rc != SBX_OK)
      return rc;
  }
  sbx__session_wait(session, &x->waiter);
  return SBX_OK;
}

static void on_ready(sbx__waiter *waiter, const sbx_err *err) {
  local_exec *x = (local_exec *)(void *)((char *)waiter - offsetof(local_exec, waiter));
  sbx_err own;
  if (err != NULL)
    finish(x, err);
  else if (request(x, &own) != SBX_OK)
    finish(x, &own);
}

/* Somebody outside of the command's tree, or something that SIGKILL does not end, has them. */
static void give_up_pipes(local_exec *x) {
  read_rest(x);
  finish(x, NULL);
}

/* The guard is stuck; or the helper, when there is none, and then another one has to take its
 * place: the next command sees that it has ended. */
static void fail_ending(local_exec *x) {
  if (!x->status->started && x->helper_serial == x->session->helper.serial)
    sbx__helper_kill(&x->session->helper);
  fail(x, SBX_EPROVIDER, "the command did not end when it was killed");
}

static void on_timer(sbx_timer *timer) {
  local_exec *x = (local_exec *)(void *)((char *)timer - offsetof(local_exec, timer));
  sbx_err err;
  switch (x->phase) {
  case SENDING:
    if (request(x, &err) != SBX_OK)
      finish(x, &err);
    break;
  case RUNNING:
    /* A command may have stopped the helper after this one was sent to it. */
    sbx__helper_continue(&x->session->helper);
    enter(x, RUNNING, CONTINUE_MS);
    break;
  case TERMINATING:
    end_the_rest(x);
    break;
  case DRAINING:
    if (guard_done(x))
      give_up_pipes(x);
    else if (x->ends_background)
      end_the_rest(x);
    else
      release(x);
    break;
  case ENDING:
    if (x->exited)
      give_up_pipes(x);
    else
      fail_ending(x);
    break;
  }
}

void sbx__local_terminate(sbx_op *op) {
  local_exec *x = exec_of(op);
  uint32_t grace_ms = x->session->config->kill_grace_ms;
  if (op->finished)
    return;
  switch (x->phase) {
  case SENDING:
    x->status->tree_gone = true;
    fail(x, SBX_ECANCELED, "cancelled before the command had started");
    break;
  case RUNNING:
    if (grace_ms == 0) {
      end_the_rest(x);
      break;
    }
    x->ends_background = true;
    order(x, SBX_GUARD_ORDER_TERM);
    enter(x, TERMINATING, grace_ms);
    break;
  case DRAINING:
    if (!guard_done(x))
      end_the_rest(x);
    break;
  case TERMINATING:
  case ENDING:
    break;
  }
}

/* 0 or an errno value. The command runs, and has not ended. */
static int send_signal(void *arg, int number) {
  local_exec *x = arg;
  unsigned char what = (unsigned char)(SBX_GUARD_ORDER_SIGNAL + number);
  if (number == SIGKILL && x->phase != ENDING)
    end_the_rest(x);
  if (number == SIGKILL || send(x->control, &what, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1)
    return 0;
  return errno;
}

sbx_op *sbx__local_give(sbx_session *session, sbx_op *exec, const sbx_input *input,
                        sbx_op_done done, void *arg) {
  (void)session;
  return sbx__local_input_give(&exec_of(exec)->input, input, done, arg);
}

static int start(local_exec *x, const sbx_exec_spec *spec, sbx_err *err) {
  if (!sbx_local_root_is_there(&x->session->workspace->root))
    return sbx__workspace_fail_gone(x->session->workspace, err);
  bool has_terminal = spec->tty.columns > 0;
  int rc = SBX_OK;
  if (has_terminal)
    rc = open_terminal(x, spec->tty, err);
  else if (spec->open_stdin)
    rc = sbx__local_input_open(&x->input, &x->command.fd[SBX_GUARD_FD_STDIN], err);
  if (rc == SBX_OK)
    rc = sbx__command_make(&x->command, x->session, spec, err);
  if (rc == SBX_OK)
    rc = open_control(x, err);
  if (rc == SBX_OK && !has_terminal)
    rc = open_outputs(x, spec->merge_streams, err);
  return rc == SBX_OK ? request(x, err) : rc;
}

sbx_op *sbx__local_exec(sbx_session *session, const sbx_exec_spec *spec, sbx_output *out,
                        sbx_exec_status *status, sbx_op_done done, void *arg) {
  sbx_err err;
  local_exec *x = sbx_calloc(1, sizeof *x);
  if (x == NULL)
    return NULL;
  *status = (sbx_exec_status){.outcome = SBX_EXITED};
  x->ends_background = spec->end_background;
  x->may_write = sbx__isolated_output(&session->config->isolation, spec->max_output_bytes);
  x->session = session;
  x->waiter.fn = on_ready;
  x->out = out;
  x->status = status;
  x->control = -1;
  sbx__command_init(&x->command);
  for (int i = 0; i < 2; i++)
    x->pipes[i] = (pipe_end){.exec = x, .fd = -1, .stream = i == 0 ? SBX_STDOUT : SBX_STDERR};
  sbx__local_input_init(&x->input, session->config->loop, send_signal, x);
  sbx_timer_init(&x->timer, session->config->loop, on_timer);
  sbx_op_init(&x->op, &exec_class, session->config->loop, done, arg);
  /* A closing loop aborts the op from its ready list. */
  if (!sbx_loop_is_closing(session->config->loop) && start(x, spec, &err) != SBX_OK)
    finish(x, &err);
  return &x->op;
}
