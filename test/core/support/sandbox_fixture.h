/* sandbox_fixture.h - a loop, a sandbox over the fake provider, and what its callbacks saw. */
#ifndef SBX_TEST_SANDBOX_FIXTURE_H
#define SBX_TEST_SANDBOX_FIXTURE_H

#include "fake_provider.h"
#include "loop_fixture.h"

typedef struct fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_sandbox *sb;
} fixture;

/* What the callback of one call was given; `times` counts its calls. */
typedef struct seen {
  int times;
  int code;
  sbx_err err;
  sbx_exec_result result; /* its slices are dead; `text` has the output */
  char text[64];          /* joined output, file content, or path of the first entry */
  char streamed[64];
  bool missing;
  size_t count;
  sbx_call *call;
  sbx_sandbox *free_me; /* freed inside the callback */
  bool cancel_on_output;
  bool free_on_output;
} seen;

int fixture_setup(void **state);
/* Frees everything; asserts that no memory, session or operation is left. */
int fixture_teardown(void **state);
/* Replaces the sandbox by one with these options. */
void fixture_options(fixture *f, const char *options);

void begin_start(fixture *f, seen *s);
void begin_close(fixture *f, seen *s);
void begin_close_within(fixture *f, seen *s, uint64_t grace_ms);
void begin_exec(fixture *f, seen *s, const char *command, uint64_t timeout_ms);
void begin_spec(fixture *f, seen *s, const sbx_exec_spec *spec);
void begin_write(fixture *f, seen *s);
void begin_write_of(fixture *f, seen *s, sbx_slice bytes);
void begin_read(fixture *f, seen *s);
void begin_list(fixture *f, seen *s);
void begin_control(fixture *f, seen *s, sbx_control control, uint64_t seconds);
void free_sandbox(fixture *f);

/* Runs all that can happen without time passing. */
void settle(fixture *f);
/* begin_exec() and settle(). */
void run_exec(fixture *f, seen *s, const char *command, uint64_t timeout_ms);
/* Runs until the callback was called. */
void await(fixture *f, const seen *s);
void await_count(fixture *f, fake_verb verb, int count);
/* Opens the sandbox, so that calls run at once. */
void open_now(fixture *f);

/* Each was called back once, with this code. */
void assert_seen(const seen *s, int code);
void assert_not_seen(const seen *s);
void assert_log(const char *log);
void assert_says(const seen *s, const char *part);

#endif
