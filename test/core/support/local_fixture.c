/* local_fixture.c - see local_fixture.h. */
#include "local_fixture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_KEPT = 64 * 1024 * 1024 };

size_t local_count_entries(const char *path) {
  DIR *dir = opendir(path);
  size_t count = 0;
  assert_non_null(dir);
  while (readdir(dir) != NULL)
    count++;
  closedir(dir);
  return count - 2;
}

size_t local_count_fds(void) {
  return local_count_entries("/proc/self/fd") - 1;
}

/* ---- life ---- */

static void make_sandbox(local_fixture *f, const char *more) {
  const char *guard = getenv("SBX_GUARD");
  sbx_err err;
  if (guard == NULL)
    fail_msg("SBX_GUARD must name the helper program");
  int n = snprintf(f->options, sizeof f->options, "{\"guardPath\":\"%s\",\"tempDir\":\"%s\"%s%s}",
                   guard, f->base, *more ? "," : "", more);
  assert_true(n > 0 && (size_t)n < sizeof f->options);
  int rc = sbx_sandbox_new(&f->sb, f->loop, "local", sbx_slice_of(f->options, (size_t)n), &err);
  if (rc != SBX_OK)
    fail_msg("%s", err.message);
}

int local_setup(void **state) {
  local_fixture *f = calloc(1, sizeof *f);
  /* The first loop of a process opens descriptors that stay. */
  assert_int_equal(uv_loop_init(&f->uv), 0);
  assert_int_equal(uv_loop_close(&f->uv), 0);
  f->fds = local_count_fds();
  snprintf(f->base, sizeof f->base, "/tmp/sbx-test-XXXXXX");
  assert_non_null(mkdtemp(f->base));
  loop_open(&f->uv, &f->loop);
  make_sandbox(f, "");
  *state = f;
  return 0;
}

void local_free_sandbox(local_fixture *f) {
  sbx_sandbox_free(f->sb);
  f->sb = NULL;
}

void local_close_loop(local_fixture *f) {
  if (f->loop == NULL)
    return;
  sbx_loop_close(f->loop, on_loop_closed, NULL);
  f->loop = NULL;
  uv_run(&f->uv, UV_RUN_DEFAULT);
  assert_int_equal(loops_closed, 1);
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  return remove(path);
}

void local_remove_tree(const char *path) {
  nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

int local_teardown(void **state) {
  local_fixture *f = *state;
  sbx_alloc_fail_at(0, false);
  local_free_sandbox(f);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  local_close_loop(f);
  assert_int_equal(uv_loop_close(&f->uv), 0);
  assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
  assert_int_equal(errno, ECHILD);
  size_t left = local_count_entries(f->base);
  local_remove_tree(f->base);
  assert_int_equal(left, 0);
  assert_int_equal(local_count_fds(), f->fds);
  assert_int_equal(sbx_alloc_live(), 0);
  free(f);
  return 0;
}

void local_options(local_fixture *f, const char *more) {
  local_free_sandbox(f);
  uv_run(&f->uv, UV_RUN_DEFAULT);
  make_sandbox(f, more);
}

/* ---- callbacks ---- */

static void init_result(local_fixture *f, local_result *r) {
  *r = (local_result){.fixture = f};
  sbx_buf_init(&r->output, MAX_KEPT);
  sbx_buf_init(&r->out, MAX_KEPT);
  sbx_buf_init(&r->error, MAX_KEPT);
  sbx_buf_init(&r->streamed, MAX_KEPT);
}

void local_result_free(local_result *r) {
  sbx_buf_deinit(&r->output);
  sbx_buf_deinit(&r->out);
  sbx_buf_deinit(&r->error);
  sbx_buf_deinit(&r->streamed);
}

static void note_err(local_result *r, const sbx_err *err) {
  r->times++;
  if (err != NULL)
    r->err = *err;
}

static void on_done(void *arg, const sbx_err *err) {
  note_err(arg, err);
}

static void on_exec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  local_result *r = arg;
  note_err(r, err);
  assert_true((err == NULL) == (result != NULL));
  if (result == NULL)
    return;
  r->exec = *result;
  sbx_buf_append_slice(&r->output, result->output.bytes);
  sbx_buf_append_slice(&r->out, result->out.bytes);
  sbx_buf_append_slice(&r->error, result->err.bytes);
  r->exec.output.bytes = sbx_buf_slice(&r->output);
  r->exec.out.bytes = sbx_buf_slice(&r->out);
  r->exec.err.bytes = sbx_buf_slice(&r->error);
}

static void on_output(void *arg, sbx_stream stream, sbx_slice bytes) {
  local_result *r = arg;
  (void)stream;
  assert_int_equal(r->times, 0);
  sbx_buf_append_slice(&r->streamed, bytes);
}

static void on_read(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  local_result *r = arg;
  note_err(r, err);
  r->missing = err == NULL && bytes == NULL;
  if (bytes != NULL)
    sbx_buf_append_slice(&r->output, *bytes);
}

/* Paths, one a line. */
static void on_list(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count) {
  local_result *r = arg;
  note_err(r, err);
  r->count = count;
  for (size_t i = 0; i < count; i++)
    sbx_buf_appendf(&r->output, "%s %d\n", entries[i].path, (int)entries[i].size);
}

/* ---- calls ---- */

sbx_exec_spec local_shell(const char *text) {
  return (sbx_exec_spec){.kind = SBX_EXEC_SHELL, .text = sbx_slice_str(text)};
}

sbx_exec_spec local_code(sbx_language language, const char *text) {
  return (sbx_exec_spec){.kind = SBX_EXEC_CODE, .language = language, .text = sbx_slice_str(text)};
}

void local_begin(local_fixture *f, local_result *r, const sbx_exec_spec *spec, bool streaming) {
  sbx_err err;
  init_result(f, r);
  int rc = sbx_sandbox_exec(f->sb, spec, streaming ? on_output : NULL, on_exec, r, &r->call, &err);
  if (rc != SBX_OK)
    fail_msg("%s", err.message);
}

void local_await(local_fixture *f, const local_result *r) {
  while (r->times == 0)
    assert_true(uv_run(&f->uv, UV_RUN_ONCE) != 0 || r->times > 0);
  assert_int_equal(r->times, 1);
}

void local_await_output(local_fixture *f, const local_result *r, const char *text) {
  while (r->streamed.ptr == NULL || strstr(r->streamed.ptr, text) == NULL) {
    assert_int_equal(r->times, 0);
    uv_run(&f->uv, UV_RUN_ONCE);
  }
}

void local_exec(local_fixture *f, local_result *r, const sbx_exec_spec *spec) {
  local_begin(f, r, spec, false);
  local_await(f, r);
  if (r->err.code != SBX_OK)
    print_error("%s: %s\n", sbx_err_name(r->err.code), r->err.message);
  assert_int_equal(r->err.code, SBX_OK);
}

void local_assert_shell(local_fixture *f, const char *text, int exit_code, const char *output) {
  local_result r;
  sbx_exec_spec spec = local_shell(text);
  local_exec(f, &r, &spec);
  assert_slice(sbx_buf_slice(&r.output), sbx_slice_str(output));
  assert_int_equal(r.exec.exit_code, exit_code);
  assert_int_equal(r.exec.output.dropped, 0);
  local_result_free(&r);
}

long local_number(local_fixture *f, const char *text) {
  local_result r;
  sbx_exec_spec spec = local_shell(text);
  local_exec(f, &r, &spec);
  assert_int_equal(r.exec.exit_code, 0);
  assert_non_null(r.output.ptr);
  long number = strtol(r.output.ptr, NULL, 10);
  local_result_free(&r);
  return number;
}

long local_helper(local_fixture *f) {
  /* The parent of the command's parent. */
  return local_number(f, "set -- $(cat /proc/$PPID/stat); echo $4");
}

void local_start(local_fixture *f) {
  local_result r;
  init_result(f, &r);
  assert_int_equal(sbx_sandbox_start(f->sb, on_done, &r, NULL, NULL), SBX_OK);
  local_await(f, &r);
  assert_int_equal(r.err.code, SBX_OK);
}

int local_close(local_fixture *f) {
  local_result r;
  init_result(f, &r);
  assert_int_equal(sbx_sandbox_close(f->sb, SBX_CLOSE_GRACE_DEFAULT_MS, on_done, &r, NULL), SBX_OK);
  local_await(f, &r);
  return r.err.code;
}

int local_write(local_fixture *f, local_result *r, const char *path, sbx_slice bytes) {
  init_result(f, r);
  assert_int_equal(sbx_sandbox_write(f->sb, sbx_slice_str(path), bytes, on_done, r, &r->call, NULL),
                   SBX_OK);
  local_await(f, r);
  return r->err.code;
}

void local_begin_read(local_fixture *f, local_result *r, const char *path) {
  init_result(f, r);
  assert_int_equal(sbx_sandbox_read(f->sb, sbx_slice_str(path), 0, on_read, r, &r->call, NULL),
                   SBX_OK);
}

int local_read(local_fixture *f, local_result *r, const char *path) {
  local_begin_read(f, r, path);
  local_await(f, r);
  return r->err.code;
}

int local_list(local_fixture *f, local_result *r, size_t max_entries) {
  init_result(f, r);
  assert_int_equal(sbx_sandbox_list(f->sb, max_entries, on_list, r, &r->call, NULL), SBX_OK);
  local_await(f, r);
  return r->err.code;
}

/* ---- pipes ---- */

int local_make_pipe(local_fixture *f, char *path, size_t size) {
  snprintf(path, size, "%s/pipe", f->base);
  assert_int_equal(mkfifo(path, 0600), 0);
  int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  assert_true(fd >= 0);
  return fd;
}

void local_await_pipe_end(int fd, const char *path) {
  char byte;
  fcntl(fd, F_SETFL, 0);
  assert_int_equal(read(fd, &byte, 1), 0);
  close(fd);
  unlink(path);
}
