/* local_fixture.h - a loop and a local sandbox that really runs commands, and their results. */
#ifndef SBX_TEST_LOCAL_FIXTURE_H
#define SBX_TEST_LOCAL_FIXTURE_H

#include "loop_fixture.h"

typedef struct local_fixture {
  uv_loop_t uv;
  sbx_loop *loop;
  sbx_sandbox *sb;
  char base[64]; /* a directory of the test; the workspaces are made in it */
  char options[8192];
  size_t fds; /* open before the test */
} local_fixture;

/* What a callback was given, copied. */
typedef struct local_result {
  local_fixture *fixture;
  int times;
  sbx_err err;
  sbx_exec_result exec; /* the slices point into the buffers below */
  sbx_buf output, out, error;
  sbx_buf streamed; /* what on_output saw */
  bool missing;     /* a read found nothing */
  size_t count;     /* of a list */
  sbx_call *call;
} local_result;

int local_setup(void **state);
/* Ends everything; asserts that no memory, descriptor, process or directory is left. */
int local_teardown(void **state);
/* Replaces the sandbox by one with these further options: text like "\"killGraceMs\":0". */
void local_options(local_fixture *f, const char *more);
void local_free_sandbox(local_fixture *f);
void local_close_loop(local_fixture *f);

sbx_exec_spec local_shell(const char *text);
sbx_exec_spec local_code(sbx_language language, const char *text);

/* Starts a call; `streaming` asks for on_output too. */
void local_begin(local_fixture *f, local_result *r, const sbx_exec_spec *spec, bool streaming);
void local_await(local_fixture *f, const local_result *r);
/* Runs until `text` has been streamed. */
void local_await_output(local_fixture *f, const local_result *r, const char *text);
void local_result_free(local_result *r);

/* Runs one command to its end; the result is to be freed. */
void local_exec(local_fixture *f, local_result *r, const sbx_exec_spec *spec);
/* Runs shell text, asserts its exit code and its joined output. */
void local_assert_shell(local_fixture *f, const char *text, int exit_code, const char *output);
/* Runs shell text that must succeed and returns its output as a number. */
long local_number(local_fixture *f, const char *text);
/* The helper's process number. */
long local_helper(local_fixture *f);

void local_start(local_fixture *f);
/* The code of the close. */
int local_close(local_fixture *f);
int local_write(local_fixture *f, local_result *r, const char *path, sbx_slice bytes);
int local_read(local_fixture *f, local_result *r, const char *path);
void local_begin_read(local_fixture *f, local_result *r, const char *path);
int local_list(local_fixture *f, local_result *r, size_t max_entries);

/* Makes a named pipe in the test's directory and opens it for reading. A command that opens it for
 * writing passes it on to what it leaves behind. */
int local_make_pipe(local_fixture *f, char *path, size_t size);
/* Waits until no process has the pipe open for writing; closes and removes it. */
void local_await_pipe_end(int fd, const char *path);

size_t local_count_fds(void);
size_t local_count_entries(const char *path);
void local_remove_tree(const char *path);

#endif
