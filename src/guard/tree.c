/* tree.c - finding and killing what descends from this process.
 *
 * A pass reads the parent of every process into a table and walks it. What has left its session
 * still descends from us, because we are a subreaper.
 *
 * Invariant: no stranger is hit. A child of ours keeps its number until we collect it. The number
 * of another descendant may have been given to somebody else since it was read: the start time is
 * looked at again, on a descriptor of the process where the kernel has them. */
#include "guard/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#ifdef __linux__
#include <sys/syscall.h>
#endif

typedef enum kinship { UNKNOWN, DESCENDANT, STRANGER } kinship;

typedef struct process {
  pid_t pid;
  pid_t parent;
  pid_t session;
  bool dead; /* a zombie */
  kinship kinship;
  unsigned long long start; /* ticks since boot */
} process;

typedef struct table {
  process *list;
  size_t count;
  size_t room;
} table;

/* ---- reading -------------------------------------------------------------------------------- */

/* The text behind `count` blanks; NULL when there are fewer. */
static const char *skip_fields(const char *text, int count) {
  for (; text != NULL && count > 0; count--) {
    text = strchr(text, ' ');
    text += text != NULL;
  }
  return text;
}

static bool read_process(process *p, pid_t pid) {
  char name[64], text[1024];
  snprintf(name, sizeof name, "/proc/%ld/stat", (long)pid);
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  ssize_t n = read(fd, text, sizeof text - 1);
  close(fd);
  text[n > 0 ? n : 0] = '\0';
  /* The program's name stands in parentheses and may hold anything, ')' included. */
  const char *end = strrchr(text, ')');
  const char *state = skip_fields(end, 1);        /* the 3rd field */
  const char *parent = skip_fields(state, 1);     /* 4th */
  const char *session = skip_fields(parent, 2);   /* 6th */
  const char *threads = skip_fields(session, 14); /* 20th */
  const char *start = skip_fields(threads, 2);    /* 22nd */
  if (start == NULL)
    return false;
  p->pid = pid;
  p->parent = (pid_t)strtol(parent, NULL, 10);
  p->session = (pid_t)strtol(session, NULL, 10);
  /* One whose first thread has ended looks like a zombie, too. */
  p->dead = (*state == 'Z' || *state == 'X') && strtol(threads, NULL, 10) <= 1;
  p->start = strtoull(start, NULL, 10);
  p->kinship = UNKNOWN;
  return true;
}

static process *next_row(table *t) {
  if (t->count == t->room) {
    size_t room = t->room > 0 ? t->room * 2 : 512;
    process *list = realloc(t->list, room * sizeof *list);
    if (list == NULL)
      return NULL;
    t->list = list;
    t->room = room;
  }
  return &t->list[t->count];
}

static int by_pid(const void *a, const void *b) {
  pid_t x = ((const process *)a)->pid, y = ((const process *)b)->pid;
  return (x > y) - (x < y);
}

/* False when there is nothing to read. */
static bool read_table(table *t) {
  DIR *dir = opendir("/proc");
  const struct dirent *entry;
  t->count = 0;
  if (dir == NULL)
    return false;
  while ((entry = readdir(dir)) != NULL) {
    long pid = strtol(entry->d_name, NULL, 10);
    process *row = pid > 0 ? next_row(t) : NULL;
    if (row != NULL && read_process(row, (pid_t)pid))
      t->count++;
  }
  closedir(dir);
  if (t->count > 0)
    qsort(t->list, t->count, sizeof *t->list, by_pid);
  return t->count > 0;
}

/* ---- kinship -------------------------------------------------------------------------------- */

static process *find(const table *t, pid_t pid) {
  process key = {.pid = pid};
  return t->count > 0 ? bsearch(&key, t->list, t->count, sizeof key, by_pid) : NULL;
}

/* Who a process is, as far as its own row and its parent's tell. */
static kinship look(const process *p, const process *parent, sbx__spared spared) {
  if (p->parent == getpid())
    return spared == SBX__SPARE_SESSION && p->session == getpid() ? STRANGER : DESCENDANT;
  return parent == NULL || p->pid == getpid() ? STRANGER : parent->kinship;
}

/* Up to the first one that is known, then down again, which makes all between known. The rows were
 * not read at one moment, so they may even form a circle. */
static void judge(const table *t, process *p, sbx__spared spared) {
  process *top = p;
  kinship found = UNKNOWN;
  for (size_t steps = 0; found == UNKNOWN; steps++) {
    process *parent = find(t, top->parent);
    found = steps <= t->count ? look(top, parent, spared) : STRANGER;
    if (found == UNKNOWN)
      top = parent;
  }
  for (; p->kinship == UNKNOWN; p = find(t, p->parent)) {
    p->kinship = found;
    if (p == top)
      break;
  }
}

/* ---- killing -------------------------------------------------------------------------------- */

static void kill_by_number(const process *p) {
  process again;
  if (read_process(&again, p->pid) && again.start == p->start)
    kill(p->pid, SIGKILL);
}

static void kill_distant(const process *p) {
#if defined(SYS_pidfd_open) && defined(SYS_pidfd_send_signal)
  process again;
  int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
  if (fd >= 0) {
    if (read_process(&again, p->pid) && again.start == p->start)
      syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0);
    close(fd);
    return;
  }
  if (errno == ESRCH)
    return;
#endif
  kill_by_number(p);
}

/* What forks and exits for ever is a child of ours each time, and gone before a table of all
 * processes has been read: our own children are killed as they are listed. */
static void kill_children(sbx__spared spared) {
#if defined(__linux__) && !defined(SBX_TEST_PROC_SCAN)
  char name[64], text[4096];
  pid_t self = getpid();
  long pid = 0;
  ssize_t n;
  snprintf(name, sizeof name, "/proc/self/task/%ld/children", (long)self);
  int fd = open(name, O_RDONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  /* Each number has a blank behind it. */
  while ((n = read(fd, text, sizeof text)) > 0) {
    for (const char *c = text; c < text + n; c++) {
      if (*c >= '0' && *c <= '9') {
        pid = pid * 10 + (*c - '0');
        continue;
      }
      if (pid > 0 && (spared == SBX__SPARE_NONE || getsid((pid_t)pid) != self))
        kill((pid_t)pid, SIGKILL);
      pid = 0;
    }
  }
  close(fd);
#else
  (void)spared;
#endif
}

long sbx__tree_kill(sbx__spared spared) {
  static table t;
  long alive = 0;
  kill_children(spared);
  if (!read_table(&t))
    return -1;
  for (size_t i = 0; i < t.count; i++) {
    process *p = &t.list[i];
    judge(&t, p, spared);
    if (p->kinship != DESCENDANT || p->dead)
      continue;
    alive++;
    if (p->parent == getpid())
      kill(p->pid, SIGKILL);
    else
      kill_distant(p);
  }
  return alive;
}

bool sbx__tree_is_told(void) {
  process self;
  return read_process(&self, getpid());
}
