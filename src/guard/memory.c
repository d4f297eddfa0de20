/* memory.c - how much memory the commands of an isolated sandbox have, where no cgroup counts it.
 *
 * What counts is what a process has written and the kernel cannot drop: pages without a file,
 * shared memory, and both in swap. A first look takes the kernel's plain counts, which have a page
 * once for each process that shares it. Only when these are too high the exact ones are read, for
 * which the kernel walks through all pages. */
#include "guard/memory.h"

#ifdef __linux__

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_ROOM = 4096, FIRST_ROOM = 256 };

typedef struct row {
  pid_t pid;
  pid_t parent;
  uint64_t bytes; /* its own; of a child of ours in the end the whole tree's */
} row;

typedef struct table {
  row *list;
  size_t count;
  size_t room;
} table;

/* The text of a file of /proc; false when there is none. */
static bool read_text(const char *directory, const char *name, char text[TEXT_ROOM]) {
  char path[300];
  snprintf(path, sizeof path, "/proc/%s/%s", directory, name);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd >= 0 ? read(fd, text, TEXT_ROOM - 1) : -1;
  if (fd >= 0)
    close(fd);
  text[n > 0 ? n : 0] = '\0';
  return n > 0;
}

/* The number of a line that begins so; 0: there is no such line. A program's name has no line end
 * in it here: the kernel writes those in another way. */
static uint64_t value_of(const char *text, const char *line) {
  const char *at = strstr(text, line);
  return at != NULL ? strtoull(at + strlen(line), NULL, 10) : 0;
}

static bool read_row(row *r, const char *name) {
  char text[TEXT_ROOM];
  r->pid = (pid_t)strtol(name, NULL, 10);
  if (r->pid <= 1 || !read_text(name, "status", text))
    return false;
  r->parent = (pid_t)value_of(text, "\nPPid:\t");
  r->bytes = 1024 * (value_of(text, "\nRssAnon:\t") + value_of(text, "\nRssShmem:\t") +
                     value_of(text, "\nVmSwap:\t"));
  return true;
}

/* What is not readable stays as it was counted. */
static void count_exactly(row *r) {
  char name[16], text[TEXT_ROOM];
  snprintf(name, sizeof name, "%ld", (long)r->pid);
  if (read_text(name, "smaps_rollup", text) && strstr(text, "\nPss_Anon:") != NULL)
    r->bytes = 1024 * (value_of(text, "\nPss_Anon:") + value_of(text, "\nPss_Shmem:") +
                       value_of(text, "\nSwapPss:"));
}

static row *next_row(table *t) {
  if (t->count == t->room) {
    size_t room = t->room > 0 ? t->room * 2 : FIRST_ROOM;
    row *list = realloc(t->list, room * sizeof *list);
    if (list == NULL)
      return NULL;
    t->list = list;
    t->room = room;
  }
  return &t->list[t->count];
}

static void read_table(table *t) {
  DIR *dir = opendir("/proc");
  const struct dirent *entry;
  t->count = 0;
  while (dir != NULL && (entry = readdir(dir)) != NULL) {
    row *r = *entry->d_name >= '1' && *entry->d_name <= '9' ? next_row(t) : NULL;
    if (r != NULL && read_row(r, entry->d_name))
      t->count++;
  }
  if (dir != NULL)
    closedir(dir);
}

static uint64_t sum(const table *t) {
  uint64_t bytes = 0;
  for (size_t i = 0; i < t->count; i++)
    bytes += t->list[i].bytes;
  return bytes;
}

static row *find(const table *t, pid_t pid) {
  for (size_t i = 0; i < t->count; i++) {
    if (t->list[i].pid == pid)
      return &t->list[i];
  }
  return NULL;
}

/* The child of ours that a process descends from. The rows were not read at one moment, so they may
 * lead nowhere or form a circle. */
static row *top_of(const table *t, row *r) {
  for (size_t steps = 0; r != NULL && r->parent != getpid() && steps <= t->count; steps++)
    r = find(t, r->parent);
  return r != NULL && r->parent == getpid() ? r : NULL;
}

static pid_t largest(const table *t) {
  const row *most = NULL;
  for (size_t i = 0; i < t->count; i++) {
    row *r = &t->list[i], *top = top_of(t, r);
    if (top != NULL && top != r)
      top->bytes += r->bytes;
  }
  for (size_t i = 0; i < t->count; i++) {
    const row *r = &t->list[i];
    if (r->parent == getpid() && (most == NULL || r->bytes > most->bytes))
      most = r;
  }
  return most != NULL ? most->pid : 0;
}

pid_t sbx__memory_look(uint64_t limit) {
  static table t;
  read_table(&t);
  if (sum(&t) <= limit)
    return 0;
  for (size_t i = 0; i < t.count; i++)
    count_exactly(&t.list[i]);
  return sum(&t) > limit ? largest(&t) : 0;
}

#endif
