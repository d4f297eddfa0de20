/* Preloaded into a Node process to make it a hostile host for child processes: a thread that, as
 * REAPER_MODE says, keeps SIGCHLD ignored ("ignore") or reaps every child that it can ("reap"). */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void *run(void *arg) {
  int reap = *(const char *)arg == 'r';
  for (;;) {
    if (reap) {
      while (waitpid(-1, NULL, WNOHANG | __WALL) > 0) {
      }
    } else {
      signal(SIGCHLD, SIG_IGN);
    }
    usleep(500);
  }
  return NULL;
}

__attribute__((constructor)) static void start(void) {
  const char *mode = getenv("REAPER_MODE");
  pthread_t thread;
  if (mode == NULL || strcmp(program_invocation_short_name, "node") != 0) {
    return;
  }
  if (pthread_create(&thread, NULL, run, (void *)mode) == 0) {
    pthread_detach(thread);
  }
}
