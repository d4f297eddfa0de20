/* bwrap.c - runs bubblewrap for bench/isolated.js, with the filter of system calls of our own
 * sandbox.
 *
 * Usage: bench_bwrap ARGUMENTS...: of bwrap. For each line that it reads it makes a directory, runs
 * bwrap with that as /workspace, removes it, and prints the microseconds of the whole.
 *
 * A program of its own, so that what is measured is bubblewrap, and not how a large process starts
 * another one. The filter is the main one of src/guard, word by word. */
#include "guard/seccomp.c"

#include <fcntl.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

enum { FILTER_FD = 9, OWN_ARGUMENTS = 6, MAX_ARGUMENTS = 120 };

static int64_t now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static int make_filter(void) {
  static program p;
  int fd = memfd_create("filter", 0);
  if (fd < 0 || build(&p, sbx__seccomp_main_rules, sbx__seccomp_main_count) != 0 ||
      write(fd, p.code, p.len * sizeof *p.code) != (ssize_t)(p.len * sizeof *p.code))
    return -1;
  return dup2(fd, FILTER_FD);
}

static int run(char **argv, char *directory) {
  pid_t pid;
  int status = 1;
  lseek(FILTER_FD, 0, SEEK_SET); /* bwrap reads it to its end */
  memcpy(strrchr(directory, '-'), "-XXXXXX", 7);
  if (mkdtemp(directory) == NULL || posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ) != 0)
    return 1;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  rmdir(directory);
  return status;
}

int main(int argc, char **argv) {
  static char line[64], directory[] = "/tmp/bench-XXXXXX";
  char bwrap[] = "bwrap", filter[] = "--seccomp", number[] = "9", bind[] = "--bind",
       to[] = "/workspace";
  char *list[MAX_ARGUMENTS] = {bwrap, filter, number, bind, directory, to};
  if (argc > MAX_ARGUMENTS - OWN_ARGUMENTS || make_filter() < 0)
    return 1;
  memcpy(list + OWN_ARGUMENTS, argv + 1, (size_t)(argc - 1) * sizeof *argv);
  while (fgets(line, sizeof line, stdin) != NULL) {
    int64_t start = now_us();
    int status = run(list, directory);
    if (status != 0)
      return fprintf(stderr, "bwrap ended with status %d\n", status), 1;
    printf("%lld\n", (long long)(now_us() - start));
    fflush(stdout);
  }
  return 0;
}
