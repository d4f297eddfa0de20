/* fake_provider.h - a provider whose every answer is scripted by the test.
 *
 * Each verb answers with success unless the test has planned something else for its next start; a
 * hanging operation ends through fake_release(), or through an abort that it obeys. */
#ifndef SBX_TEST_FAKE_PROVIDER_H
#define SBX_TEST_FAKE_PROVIDER_H

#include "sandbox/object.h"

typedef enum fake_verb {
  FAKE_OPEN,
  FAKE_CLOSE,
  FAKE_PROBE,
  FAKE_EXEC,
  FAKE_KILL,
  FAKE_PUT,
  FAKE_GET,
  FAKE_LIST,
  FAKE_PATH,
  FAKE_CONTROL,
  FAKE_VERBS
} fake_verb;

typedef struct fake_plan {
  int code;       /* how it ends */
  bool hang;      /* not before fake_release() or an abort */
  bool deaf;      /* SBX_ECANCELED and SBX_ETIMEOUT change nothing */
  bool no_effect; /* the error says so */
  uint64_t retry_after_ms;
} fake_plan;

typedef struct fake_state {
  fake_plan plans[FAKE_VERBS][4]; /* for the next starts of a verb, in order */
  size_t planned[FAKE_VERBS];
  int count[FAKE_VERBS]; /* how often it was started */
  char log[512];         /* "open1 exec1 close1 ": verbs in order, with the session's number */

  bool attached;          /* sessions are not owned */
  sbx_exec_status status; /* what an exec reports */
  const char *output;     /* what an exec writes to stdout when it starts, or NULL */
  const char *content;    /* what a get or a part reads */
  const char *stamp;      /* of the file that a part is of */
  uint64_t size;          /* the same */
  char paths[512];        /* "join a b 3 4;": what was done to paths, in order */
  sbx_liveness liveness;  /* what a probe finds */
  bool kill_is_ignored;   /* an accepted kill does not end the exec */

  char text[64], cwd[64], stdin_bytes[64], argv[64], env[64]; /* of the last exec */
  char path[64], bytes[64];                                   /* of the last put or get */
  uint64_t timeout_ms;
  size_t max_output_bytes;
  sbx_control control; /* the last one */
  uint64_t seconds;

  int sessions; /* made so far */
  int live_sessions;
  int live_configs;
  int live_ops;
} fake_state;

extern fake_state fake;
/* Its capabilities and budgets may be changed by a test; fake_reset() puts them back. */
extern sbx_provider fake_provider;

void fake_reset(void);
/* Adds a plan for the next start of `verb` that has none yet. */
void fake_next(fake_verb verb, fake_plan plan);
/* Whether an operation of `verb` is in flight. */
bool fake_lives(fake_verb verb);
/* Ends the oldest operation of `verb` that hangs. */
void fake_release(fake_verb verb, int code);

#endif
