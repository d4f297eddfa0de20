/* trailer.h - the line by which wrap.sh says in both outputs that a command has ended. Sans-I/O. */
#ifndef SBX_RUNNER_TRAILER_H
#define SBX_RUNNER_TRAILER_H

#include "core/buf.h"

enum {
  SBX_RUNNER_TOKEN = 32, /* characters of what marks a command */
  /* In place of exit codes: nothing ran, since there is no such shell, or no such directory. */
  SBX_RUNNER_NO_SHELL = 999,
  SBX_RUNNER_NO_DIRECTORY = 998,
  /* The program has kept the limit, and nothing is left, or something may be. */
  SBX_RUNNER_LIMIT_GONE = 997,
  SBX_RUNNER_LIMIT = 996,
};

/* Finds the line at any split, and takes it out of the stream: RS, the token, a blank, the exit
 * code, perhaps a blank and a number, LF. Zero-initialize, then set what is above the line. */
typedef struct sbx_runner_trailer {
  const char *token;
  void (*fn)(void *arg, sbx_slice bytes); /* gets all that is not the line */
  void *arg;
  /* ---- */
  char held[SBX_RUNNER_TOKEN + 24]; /* what may be the beginning of the line */
  size_t held_len;
  size_t digits; /* of the number that comes */
  bool second;
  bool found;
  int exit_code;
  int64_t number; /* the second; 0: there is none */
} sbx_runner_trailer;

void sbx_runner_trailer_feed(sbx_runner_trailer *trailer, sbx_slice bytes);
/* The stream has ended: what was held is no line. */
void sbx_runner_trailer_end(sbx_runner_trailer *trailer);

#endif
