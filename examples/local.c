/* local.c - runs one command in a local sandbox, from C and on a loop of one's own.
 *
 *   make BUILD=build/c example
 *   build/c/example_local build/c/sbx_guard 'echo hello; exit 3'
 *
 * The first argument is the helper program of the local provider. Prints the command's output as it
 * arrives and exits with its exit code. */
#include "sbx.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct run {
  sbx_loop *loop;
  sbx_sandbox *sandbox;
  int exit_code;
} run;

static void on_closed(void *arg, const sbx_err *err) {
  run *r = arg;
  if (err != NULL)
    fprintf(stderr, "close: %s\n", err->message);
  sbx_sandbox_free(r->sandbox);
  sbx_loop_close(r->loop, NULL, NULL);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  (void)arg;
  fwrite(bytes.ptr, 1, bytes.len, stream == SBX_STDOUT ? stdout : stderr);
}

static void on_exited(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  run *r = arg;
  if (err != NULL) {
    fprintf(stderr, "%s: %s\n", sbx_err_name(err->code), err->message);
  } else {
    fprintf(stderr, "exit code %d after %llu ms\n", result->exit_code,
            (unsigned long long)result->duration_ms);
    r->exit_code = result->exit_code;
  }
  /* Ends the sandbox and removes its workspace. */
  sbx_sandbox_close(r->sandbox, SBX_CLOSE_GRACE_DEFAULT_MS, on_closed, r, NULL);
}

int main(int argc, char **argv) {
  uv_loop_t uv;
  sbx_err err;
  run r = {.exit_code = 1};
  char guard[PATH_MAX], options[PATH_MAX + 64];
  if (argc != 3 || realpath(argv[1], guard) == NULL) {
    fprintf(stderr, "usage: %s path/to/sbx_guard 'command line'\n", argv[0]);
    return 2;
  }
  snprintf(options, sizeof options, "{\"guardPath\":\"%s\"}", guard);
  uv_loop_init(&uv);
  if (sbx_loop_new(&r.loop, &uv, &err) != SBX_OK) {
    fprintf(stderr, "%s\n", err.message);
    return 1;
  }

  sbx_exec_spec spec = {.kind = SBX_EXEC_SHELL, .text = {argv[2], strlen(argv[2])}};
  int rc =
      sbx_sandbox_new(&r.sandbox, r.loop, "local", sbx_slice_of(options, strlen(options)), &err);
  if (rc == SBX_OK)
    rc = sbx_sandbox_exec(r.sandbox, &spec, on_output, on_exited, &r, NULL, &err);
  if (rc != SBX_OK) {
    fprintf(stderr, "%s: %s\n", sbx_err_name(rc), err.message);
    sbx_sandbox_free(r.sandbox);
    sbx_loop_close(r.loop, NULL, NULL);
  }

  uv_run(&uv, UV_RUN_DEFAULT);
  uv_loop_close(&uv);
  return r.exit_code;
}
