/* Tests of the local provider's files: what is refused, what is followed, what is removed.
 *
 * Each test runs twice: with openat2() and with the walk that replaces it. */
#include "providers/local/fs.h"

#include "core/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static bool use_walk;

typedef struct fixture {
  char base[64];    /* holds the root and what is outside of it */
  char path[80];    /* the root */
  char outside[80]; /* a directory with one file, "secret" */
  int base_fd;
  sbx_local_root root;
} fixture;

/* ---- plumbing ---- */

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw) {
  (void)st;
  (void)type;
  (void)ftw;
  chmod(path, 0700);
  remove(path);
  return 0;
}

static void spill(int dir, const char *path, const char *text) {
  int fd = openat(dir, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
}

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  snprintf(f->base, sizeof f->base, "/tmp/sbx-test-XXXXXX");
  assert_non_null(mkdtemp(f->base));
  snprintf(f->path, sizeof f->path, "%s/ws", f->base);
  snprintf(f->outside, sizeof f->outside, "%s/ws-other", f->base);
  assert_int_equal(mkdir(f->path, 0700), 0);
  assert_int_equal(mkdir(f->outside, 0700), 0);
  f->base_fd = open(f->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  spill(f->base_fd, "ws-other/secret", "secret");
  int fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_true(fd >= 0);
  sbx_local_root_init(&f->root, fd, f->path);
  f->root.walk = f->root.walk || use_walk;
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  close(f->root.fd);
  close(f->base_fd);
  nftw(f->base, remove_one, 16, FTW_DEPTH | FTW_PHYS);
  assert_int_equal(sbx_alloc_live(), 0);
  free(f);
  return 0;
}

static int write_file(fixture *f, const char *path, const char *text) {
  sbx_err err;
  return sbx_local_fs_write(&f->root, sbx_slice_str(path), sbx_slice_str(text), NULL, &err);
}

/* The code of a refused write; the error names the path. */
static void assert_write_fails(fixture *f, const char *path, int code, const char *fragment) {
  sbx_err err = {0};
  assert_int_equal(
      sbx_local_fs_write(&f->root, sbx_slice_str(path), sbx_slice_str("x"), NULL, &err), code);
  assert_int_equal(err.code, code);
  assert_non_null(strstr(err.message, fragment));
}

static void assert_read_fails(fixture *f, const char *path, int code, const char *fragment) {
  sbx_err err = {0};
  sbx_buf buf;
  sbx_buf_init(&buf, 1000);
  assert_int_equal(sbx_local_fs_read(&f->root, sbx_slice_str(path), &buf, &err), code);
  assert_int_equal(err.code, code);
  assert_non_null(strstr(err.message, fragment));
  sbx_buf_deinit(&buf);
}

static void assert_content(fixture *f, const char *path, const char *text) {
  sbx_err err = {0};
  sbx_buf buf;
  sbx_buf_init(&buf, 1000);
  assert_int_equal(sbx_local_fs_read(&f->root, sbx_slice_str(path), &buf, &err), SBX_OK);
  assert_true(sbx_slice_eq_str(sbx_buf_slice(&buf), text));
  sbx_buf_deinit(&buf);
}

static void link_to(fixture *f, const char *target, const char *name) {
  assert_int_equal(symlinkat(target, f->root.fd, name), 0);
}

static void make_dir(fixture *f, const char *name) {
  assert_int_equal(mkdirat(f->root.fd, name, 0755), 0);
}

static mode_t mode_of(fixture *f, const char *name) {
  struct stat st;
  assert_int_equal(fstatat(f->root.fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
  return st.st_mode & 07777;
}

/* How many entries a directory has, leftovers of a write included. */
static size_t entry_count(int dir, const char *name) {
  sbx_local_root root;
  sbx_listing listing;
  sbx_err err;
  int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  sbx_local_root_init(&root, fd, "/nowhere");
  assert_int_equal(sbx_local_fs_list(&root, 1000, &listing, &err), SBX_OK);
  size_t count = listing.count;
  sbx_listing_free(&listing);
  close(fd);
  return count;
}

/* ---- paths ---- */

static void test_writes_and_reads_back(void **state) {
  fixture *f = *state;
  char absolute[128];
  static const char *const names[] = {
      "a",     "a b",      "q'u\"o",  "$(touch pwned)",   "-rf",       "*",          "...",
      "a../b", "..hidden", "d..lock", "\xF0\x9F\x98\x80", "e\xCC\x81", "x/y/z/deep", "x/../y2",
      "./s",   "x//t",     "\\n",     ".git/config"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(write_file(f, names[i], names[i]), SBX_OK);
    assert_content(f, names[i], names[i]);
  }
  assert_content(f, "y2", "x/../y2");
  snprintf(absolute, sizeof absolute, "%s/abs/f", f->path);
  assert_int_equal(write_file(f, absolute, "1"), SBX_OK);
  assert_content(f, "abs/f", "1");
  snprintf(absolute, sizeof absolute, "%s//abs/./f", f->path);
  assert_content(f, absolute, "1");
  assert_int_equal(faccessat(f->root.fd, "pwned", F_OK, 0), -1);
}

static void test_refuses_paths_that_leave(void **state) {
  fixture *f = *state;
  char absolute[128];
  static const char *const names[] = {"../x",        "a/../../x", "..",      "../ws-other/secret",
                                      "/etc/passwd", "/",         "a/../..", "/tmp"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_write_fails(f, names[i], SBX_EPATH, "(path traversal); give a path inside it");
    assert_read_fails(f, names[i], SBX_EPATH, "(path traversal); give a path inside it");
  }
  assert_read_fails(f, f->outside, SBX_EPATH, "(path traversal); give a path inside it");
  snprintf(absolute, sizeof absolute, "%s/../ws-other/secret", f->path);
  assert_read_fails(f, absolute, SBX_EPATH, "(path traversal); give a path inside it");
  assert_int_equal(entry_count(f->base_fd, "."), 1);
}

static void test_refuses_names_that_are_no_file(void **state) {
  fixture *f = *state;
  char name[4200];
  make_dir(f, "dir");
  assert_int_equal(write_file(f, "file.txt", "x"), SBX_OK);
  static const char *const dirs[] = {"", ".", "./", "a/..", "dir/", "dir/."};
  for (size_t i = 0; i < 5; i++) {
    assert_write_fails(f, dirs[i], SBX_EINVAL, "directory");
    assert_read_fails(f, dirs[i], SBX_EINVAL, "directory");
  }
  assert_read_fails(f, f->path, SBX_EINVAL, f->path);
  assert_read_fails(f, "dir", SBX_EINVAL, "\"dir\": it is a directory");
  assert_write_fails(f, "dir", SBX_EINVAL, "\"dir\": it is a directory");
  assert_read_fails(f, "file.txt/child", SBX_EINVAL, "\"file.txt/child\": a file stands");
  assert_write_fails(f, "file.txt/child", SBX_EINVAL, "\"file.txt/child\": a file stands");
  assert_write_fails(f, "file.txt/c/d", SBX_EINVAL, "\"file.txt/c/d\": a file stands");
  assert_read_fails(f, "absent", SBX_ENOTFOUND, "\"absent\": it does not exist");
  assert_read_fails(f, "absent/x", SBX_ENOTFOUND, "\"absent/x\"");
  assert_read_fails(f, "dir/x", SBX_ENOTFOUND, "\"dir/x\"");
  memset(name, 'n', sizeof name);
  name[256] = '\0';
  assert_write_fails(f, name, SBX_EINVAL, "too long");
  name[255] = '\0';
  assert_int_equal(write_file(f, name, "x"), SBX_OK);
  for (size_t i = 0; i < sizeof name; i++)
    name[i] = i % 2 ? '/' : 'd';
  name[4199] = '\0';
  assert_write_fails(f, name, SBX_EINVAL, "too long");
  assert_content(f, "file.txt", "x");
}

static void test_refuses_control_characters(void **state) {
  fixture *f = *state;
  sbx_err err;
  assert_int_equal(
      sbx_local_fs_write(&f->root, sbx_slice_of("a\0b", 3), sbx_slice_str("x"), NULL, &err),
      SBX_EPATH);
  assert_write_fails(f, "x\ny", SBX_EPATH, "control");
  assert_write_fails(f, "\x1B[2J", SBX_EPATH, "control");
  assert_read_fails(f, "\x7F", SBX_EPATH, "control");
  assert_int_equal(entry_count(f->root.fd, "."), 0);
}

/* ---- links ---- */

/* It must not replace what is written after it. */
static void test_a_write_that_was_called_off(void **state) {
  fixture *f = *state;
  sbx_err err = {0};
  atomic_bool stop = true;
  static const char *const texts[] = {"", "new"};
  assert_int_equal(write_file(f, "file", "old"), SBX_OK);
  for (size_t i = 0; i < 2; i++) {
    assert_int_equal(
        sbx_local_fs_write(&f->root, sbx_slice_str("file"), sbx_slice_str(texts[i]), &stop, &err),
        SBX_ECANCELED);
    assert_content(f, "file", "old");
  }
  assert_int_equal(entry_count(f->root.fd, "."), 1);
}

static void test_links_that_stay_inside(void **state) {
  fixture *f = *state;
  struct stat st;
  make_dir(f, "dir");
  make_dir(f, "dir/sub");
  assert_int_equal(write_file(f, "dir/file", "1"), SBX_OK);
  link_to(f, "dir/file", "to-file");
  link_to(f, "to-file", "to-link");
  link_to(f, "dir", "to-dir");
  link_to(f, "../file", "dir/sub/up");
  assert_content(f, "to-link", "1");
  assert_content(f, "to-dir/file", "1");
  assert_content(f, "dir/sub/up", "1");
  assert_int_equal(write_file(f, "to-link", "2"), SBX_OK);
  assert_content(f, "dir/file", "2");
  assert_int_equal(write_file(f, "dir/sub/up", "3"), SBX_OK);
  assert_content(f, "dir/file", "3");
  assert_int_equal(write_file(f, "to-dir/new/file", "4"), SBX_OK);
  assert_content(f, "dir/new/file", "4");
  assert_int_equal(fstatat(f->root.fd, "to-link", &st, AT_SYMLINK_NOFOLLOW), 0);
  assert_true(S_ISLNK(st.st_mode));
}

/* As `ln -s "$PWD/file" name` makes them. */
static void test_absolute_links_that_stay_inside(void **state) {
  fixture *f = *state;
  char to[160];
  struct stat st;
  sbx_err err;
  int fd = -1;
  make_dir(f, "dir");
  make_dir(f, "dir/sub");
  assert_int_equal(write_file(f, "dir/file", "1"), SBX_OK);
  snprintf(to, sizeof to, "%s/dir/file", f->path);
  link_to(f, to, "to-file");
  snprintf(to, sizeof to, "%s//dir/./sub/", f->path);
  link_to(f, to, "to-sub");
  snprintf(to, sizeof to, "%s/to-sub/../file", f->path);
  link_to(f, to, "dir/sub/twice");
  snprintf(to, sizeof to, "%s/dir/nothing", f->path);
  link_to(f, to, "dangling");
  link_to(f, f->path, "to-root");
  link_to(f, "nothing", "dir/sub/dangling");
  snprintf(to, sizeof to, "%s-other", f->path);
  link_to(f, to, "to-neighbour");
  snprintf(to, sizeof to, "%s/../ws-other", f->path);
  link_to(f, to, "up-from-inside");
  snprintf(to, sizeof to, "%s/loop", f->path);
  link_to(f, to, "loop");

  static const char *const same[] = {"to-file", "to-sub/twice", "to-root/dir/file",
                                     "to-root/to-root/to-sub/twice"};
  for (size_t i = 0; i < sizeof same / sizeof *same; i++)
    assert_content(f, same[i], "1");
  assert_int_equal(write_file(f, "to-file", "2"), SBX_OK);
  assert_content(f, "dir/file", "2");
  assert_int_equal(write_file(f, "to-root/to-sub/twice", "3"), SBX_OK);
  assert_content(f, "dir/file", "3");
  assert_int_equal(write_file(f, "to-sub/new/file", "4"), SBX_OK);
  assert_content(f, "dir/sub/new/file", "4");
  assert_int_equal(fstatat(f->root.fd, "to-file", &st, AT_SYMLINK_NOFOLLOW), 0);
  assert_true(S_ISLNK(st.st_mode));
  assert_int_equal(sbx_local_fs_open_dir(&f->root, sbx_slice_str("to-sub"), &fd, &err), SBX_OK);
  close(fd);

  assert_read_fails(f, "to-sub/missing", SBX_ENOTFOUND, "does not exist");
  static const char *const refused[] = {"dangling", "to-sub/dangling", "to-neighbour/secret",
                                        "up-from-inside/secret", "loop"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    assert_read_fails(f, refused[i], SBX_EPATH, "symbolic link");
    assert_write_fails(f, refused[i], SBX_EPATH, "symbolic link");
  }
  assert_int_equal(entry_count(f->base_fd, "ws-other"), 1);
}

static size_t links_asked;

ssize_t readlinkat(int dir, const char *restrict path, char *restrict buf, size_t size) {
  links_asked++;
  return syscall(SYS_readlinkat, dir, path, buf, size);
}

/* Each part of a long path is looked at a few times, not once for each part behind it. */
static void test_a_long_path_through_a_link(void **state) {
  enum { DEPTH = 300 };
  fixture *f = *state;
  char path[2 * DEPTH + 32] = "to-root", missing[sizeof path + 16];
  link_to(f, f->path, "to-root");
  for (size_t i = 0; i < DEPTH; i++)
    strcat(path, "/d");
  snprintf(missing, sizeof missing, "%s/file", path);
  links_asked = 0;
  assert_int_equal(write_file(f, missing, "1"), SBX_OK);
  assert_content(f, missing, "1");
  snprintf(missing, sizeof missing, "%s/no/file", path);
  assert_read_fails(f, missing, SBX_ENOTFOUND, "does not exist");
  assert_in_range(links_asked, DEPTH, 20 * DEPTH);
  strcat(path, "/dangling");
  link_to(f, "nothing", path + strlen("to-root/"));
  assert_read_fails(f, path, SBX_EPATH, "symbolic link");
  strcat(path, "/x");
  assert_read_fails(f, path, SBX_EPATH, "symbolic link");
  assert_write_fails(f, path, SBX_EPATH, "symbolic link");
}

/* What a command has left must not keep a thread of the host for seconds. */
static void test_links_through_many_directories(void **state) {
  enum { DEPTH = 400, LINKS = 20 };
  fixture *f = *state;
  char deep[2 * DEPTH + 1], path[sizeof deep + 16], to[sizeof path + 200];
  deep[0] = '\0';
  for (size_t i = 0; i < DEPTH; i++) {
    strcat(deep, i > 0 ? "/d" : "d");
    make_dir(f, deep);
  }
  for (int i = 0; i < LINKS; i++) {
    snprintf(path, sizeof path, "%s/l%d", deep, i);
    snprintf(to, sizeof to, "%s/%s/l%d", f->path, deep, i + 1);
    link_to(f, to, path);
  }
  assert_int_equal(write_file(f, to + strlen(f->path) + 1, "1"), SBX_OK);
  for (int i = 0; i < 2; i++) {
    snprintf(to, sizeof to, "%s/%s/l%d", f->path, deep, i > 0 ? LINKS - 3 : 0);
    link_to(f, to, i > 0 ? "few" : "many");
  }
  assert_content(f, "few", "1");
  assert_write_fails(f, "few/x", SBX_EINVAL, "directory");
  assert_read_fails(f, "many", SBX_EPATH, "symbolic link");

  snprintf(to, sizeof to, "%s/%s/../d/../d/../d/../d/../d/../d/../d/../d/../d/../d/../d/l%d",
           f->path, deep, LINKS);
  link_to(f, to, "up-and-down");
  assert_read_fails(f, "up-and-down", SBX_EPATH, "symbolic link");
}

static void test_links_that_leave(void **state) {
  fixture *f = *state;
  char secret[128];
  snprintf(secret, sizeof secret, "%s/secret", f->outside);
  make_dir(f, "dir");
  link_to(f, secret, "absolute");
  link_to(f, "../ws-other/secret", "up");
  link_to(f, "../ws-other", "to-dir");
  link_to(f, f->outside, "to-absolute-dir");
  link_to(f, "dir/../../ws-other/secret", "dir-up");
  link_to(f, "../ws-other/new", "to-new");
  link_to(f, "/proc/self/cwd", "magic");
  link_to(f, "..", "parent");
  static const char *const names[] = {
      "absolute", "up",     "to-dir/secret", "to-absolute-dir/secret",
      "dir-up",   "to-new", "magic/x",       "parent/ws-other/secret"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_read_fails(f, names[i], SBX_EPATH, names[i]);
    assert_write_fails(f, names[i], SBX_EPATH, names[i]);
  }
  assert_write_fails(f, "to-dir/new", SBX_EPATH, "symbolic link");
  assert_write_fails(f, "to-dir/a/b", SBX_EPATH, "symbolic link");
  assert_write_fails(f, "parent", SBX_EINVAL, "parent");
  assert_int_equal(entry_count(f->base_fd, "ws-other"), 1);
}

static void test_links_that_lead_nowhere(void **state) {
  fixture *f = *state;
  link_to(f, "nothing", "dangling");
  link_to(f, "dangling", "indirect");
  link_to(f, "nothing/dir", "dangling-dir");
  link_to(f, "loop-b", "loop-a");
  link_to(f, "loop-a", "loop-b");
  static const char *const names[] = {"dangling",         "indirect", "dangling-dir/x",
                                      "dangling-dir/x/y", "loop-a",   "loop-a/x"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_read_fails(f, names[i], SBX_EPATH, names[i]);
    assert_write_fails(f, names[i], SBX_EPATH, names[i]);
  }
  assert_int_equal(entry_count(f->root.fd, "."), 0);
}

/* ---- what may be read and written ---- */

static void test_only_regular_files(void **state) {
  fixture *f = *state;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  assert_int_equal(mkfifoat(f->root.fd, "fifo", 0600), 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", f->path);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
  assert_read_fails(f, "fifo", SBX_EINVAL, "\"fifo\": it is not a regular file");
  assert_read_fails(f, "socket", SBX_EINVAL, "\"socket\": it is not a regular file");
  assert_write_fails(f, "fifo", SBX_EINVAL, "\"fifo\": it is not a regular file");
  assert_write_fails(f, "socket", SBX_EINVAL, "\"socket\": it is not a regular file");
  close(fd);
}

static void test_size_limit(void **state) {
  fixture *f = *state;
  sbx_err err;
  sbx_buf buf;
  assert_int_equal(write_file(f, "ten", "0123456789"), SBX_OK);
  sbx_buf_init(&buf, 10);
  assert_int_equal(sbx_local_fs_read(&f->root, sbx_slice_str("ten"), &buf, &err), SBX_OK);
  assert_int_equal(buf.len, 10);
  sbx_buf_deinit(&buf);
  sbx_buf_init(&buf, 9);
  assert_int_equal(sbx_local_fs_read(&f->root, sbx_slice_str("ten"), &buf, &err), SBX_ETOOBIG);
  assert_non_null(strstr(err.message, "9 bytes"));
  sbx_buf_deinit(&buf);
  int fd = openat(f->root.fd, "sparse", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
  if (ftruncate(fd, (off_t)1 << 40) == 0) {
    sbx_buf_init(&buf, (size_t)1 << 31);
    assert_int_equal(sbx_local_fs_read(&f->root, sbx_slice_str("sparse"), &buf, &err), SBX_ETOOBIG);
    assert_null(buf.ptr);
  }
  close(fd);
}

static void test_bytes_survive(void **state) {
  fixture *f = *state;
  sbx_err err;
  sbx_buf in, out;
  sbx_buf_init(&in, 16 << 20);
  sbx_buf_init(&out, 16 << 20);
  for (int i = 0; i < 256 * 400; i++)
    sbx_buf_append_char(&in, (char)(i % 256));
  static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 65536, 102400};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    sbx_slice bytes = sbx_slice_of(in.ptr, sizes[i]);
    assert_int_equal(sbx_local_fs_write(&f->root, sbx_slice_str("b"), bytes, NULL, &err), SBX_OK);
    assert_int_equal(sbx_local_fs_read(&f->root, sbx_slice_str("b"), &out, &err), SBX_OK);
    assert_true(sbx_slice_eq(sbx_buf_slice(&out), bytes));
    sbx_buf_deinit(&out);
  }
  sbx_buf_deinit(&in);
}

static void test_replacing_keeps_the_mode(void **state) {
  fixture *f = *state;
  mode_t mask = umask(0027);
  assert_int_equal(write_file(f, "d/new", "1"), SBX_OK);
  umask(mask);
  assert_int_equal(mode_of(f, "d"), 0750);
  assert_int_equal(mode_of(f, "d/new"), 0640);
  assert_int_equal(fchmodat(f->root.fd, "d/new", 06751, 0), 0);
  assert_int_equal(write_file(f, "d/new", "1"), SBX_OK);
  assert_int_equal(mode_of(f, "d/new"), 06751);
  f->root.unmarked = true;
  assert_int_equal(write_file(f, "d/new", "2"), SBX_OK);
  assert_int_equal(mode_of(f, "d/new"), 0751);
  /* Whoever has the old file open keeps the old bytes, and a hard link its own. */
  assert_int_equal(linkat(f->root.fd, "d/new", f->root.fd, "hard", 0), 0);
  assert_int_equal(write_file(f, "d/new", "3"), SBX_OK);
  assert_content(f, "hard", "2");
  assert_int_equal(entry_count(f->root.fd, "d"), 1);
}

static void test_a_removed_workspace(void **state) {
  fixture *f = *state;
  assert_true(sbx_local_root_is_there(&f->root));
  assert_int_equal(rmdir(f->path), 0);
  assert_false(sbx_local_root_is_there(&f->root));
  assert_write_fails(f, "x", SBX_ELOST, f->path);
  assert_write_fails(f, "x/y", SBX_ELOST, f->path);
  assert_read_fails(f, "x", SBX_ELOST, f->path);
  assert_int_equal(mkdir(f->path, 0700), 0);
  assert_false(sbx_local_root_is_there(&f->root));
}

static void test_opens_directories(void **state) {
  fixture *f = *state;
  char absolute[128];
  sbx_err err;
  int fd;
  make_dir(f, "dir");
  assert_int_equal(write_file(f, "file", ""), SBX_OK);
  snprintf(absolute, sizeof absolute, "%s/dir", f->path);
  const char *const names[] = {"", ".", "dir", "dir/", "./dir/../dir", absolute};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    assert_int_equal(sbx_local_fs_open_dir(&f->root, sbx_slice_str(names[i]), &fd, &err), SBX_OK);
    close(fd);
  }
  link_to(f, "..", "up");
  assert_int_equal(sbx_local_fs_open_dir(&f->root, sbx_slice_str("up"), &fd, &err), SBX_EPATH);
  assert_int_equal(sbx_local_fs_open_dir(&f->root, sbx_slice_str(".."), &fd, &err), SBX_EPATH);
  assert_int_equal(sbx_local_fs_open_dir(&f->root, sbx_slice_str("file"), &fd, &err), SBX_EINVAL);
  assert_int_equal(sbx_local_fs_open_dir(&f->root, sbx_slice_str("no"), &fd, &err), SBX_EINVAL);
  assert_non_null(strstr(err.message, "\"no\": it does not exist" SBX__CWD_ADVICE));
}

/* ---- races ---- */

typedef struct swapper {
  fixture *f;
  atomic_bool stop;
} swapper;

/* Lets "d" be a directory and a link to the outside in turn. "via" is an absolute link to it. */
static void *swap_forever(void *arg) {
  swapper *s = arg;
  while (!atomic_load(&s->stop)) {
    renameat2(s->f->root.fd, "d", s->f->root.fd, "link", RENAME_EXCHANGE);
    sched_yield();
  }
  return NULL;
}

static void test_a_swapped_directory_never_leads_out(void **state) {
  fixture *f = *state;
  swapper s = {.f = f};
  pthread_t thread;
  size_t inside = 0, refused = 0;
  size_t rounds = getenv("SBX_VALGRIND") != NULL ? 50 : 3000;
  char to[100];
  make_dir(f, "d");
  spill(f->root.fd, "d/secret", "inside");
  link_to(f, "../ws-other", "link");
  snprintf(to, sizeof to, "%s/d", f->path);
  link_to(f, to, "via");
  atomic_init(&s.stop, false);
  assert_int_equal(pthread_create(&thread, NULL, swap_forever, &s), 0);
  for (size_t i = 0; i < rounds; i++) {
    sbx_buf buf;
    sbx_err err;
    sbx_buf_init(&buf, 100);
    sbx_slice path = sbx_slice_str(i % 2 > 0 ? "via/secret" : "d/secret");
    if (sbx_local_fs_read(&f->root, path, &buf, &err) == SBX_OK) {
      assert_true(sbx_slice_eq_str(sbx_buf_slice(&buf), "inside"));
      inside++;
    } else {
      refused++;
    }
    sbx_buf_deinit(&buf);
    sbx_local_fs_write(&f->root, sbx_slice_str("d/new"), sbx_slice_str("x"), NULL, &err);
    sbx_local_fs_write(&f->root, sbx_slice_str("d/deep/new"), sbx_slice_str("x"), NULL, &err);
    sbx_local_fs_write(&f->root, sbx_slice_str("via/deep/new"), sbx_slice_str("x"), NULL, &err);
  }
  atomic_store(&s.stop, true);
  pthread_join(thread, NULL);
  assert_int_equal(inside + refused, rounds);
  assert_int_equal(entry_count(f->base_fd, "ws-other"), 1);
  assert_int_equal(faccessat(f->base_fd, "ws-other/deep", F_OK, 0), -1);
}

/* ---- list ---- */

static void test_lists_regular_files(void **state) {
  fixture *f = *state;
  sbx_listing listing;
  sbx_err err;
  assert_int_equal(sbx_local_fs_list(&f->root, 0, &listing, &err), SBX_OK);
  assert_int_equal(listing.count, 0);
  assert_int_equal(write_file(f, "b/c", "123"), SBX_OK);
  assert_int_equal(write_file(f, ".git/HEAD", "1"), SBX_OK);
  assert_int_equal(write_file(f, "a", ""), SBX_OK);
  make_dir(f, "empty");
  link_to(f, "a", "link");
  link_to(f, "b", "link-dir");
  link_to(f, "..", "up");
  assert_int_equal(mkfifoat(f->root.fd, "fifo", 0600), 0);
  assert_int_equal(sbx_local_fs_list(&f->root, 3, &listing, &err), SBX_OK);
  assert_int_equal(listing.count, 3);
  assert_string_equal(listing.entries[0].path, ".git/HEAD");
  assert_string_equal(listing.entries[1].path, "a");
  assert_string_equal(listing.entries[2].path, "b/c");
  assert_int_equal(listing.entries[2].size, 3);
  sbx_listing_free(&listing);
  assert_int_equal(sbx_local_fs_list(&f->root, 2, &listing, &err), SBX_ETOOBIG);
  assert_null(listing.entries);
}

static void test_a_list_leaves_out_what_is_being_written(void **state) {
  fixture *f = *state;
  sbx_listing listing;
  sbx_err err;
  spill(f->root.fd, ".cloudsandbox-0123456789abcdef.tmp", "half");
  spill(f->root.fd, ".cloudsandbox-notes.tmp", "a user's");
  spill(f->root.fd, ".cloudsandbox-0123456789abcdef.tmp2", "a user's");
  assert_int_equal(sbx_local_fs_list(&f->root, 100, &listing, &err), SBX_OK);
  assert_int_equal(listing.count, 2);
  assert_string_equal(listing.entries[0].path, ".cloudsandbox-0123456789abcdef.tmp2");
  sbx_listing_free(&listing);
}

static void test_list_without_memory(void **state) {
  fixture *f = *state;
  sbx_listing listing;
  sbx_err err;
  int rc = SBX_ENOMEM;
  char name[32];
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "d%d/f%d", i % 20, i);
    assert_int_equal(write_file(f, name, "x"), SBX_OK);
  }
  for (size_t n = 1; rc != SBX_OK; n++) {
    sbx_alloc_fail_at(n, false);
    rc = sbx_local_fs_list(&f->root, 100, &listing, &err);
    sbx_alloc_fail_at(0, false);
    assert_true(rc == SBX_OK || rc == SBX_ENOMEM);
    if (rc != SBX_OK)
      assert_int_equal(sbx_alloc_live(), 0);
  }
  assert_int_equal(listing.count, 40);
  sbx_listing_free(&listing);
}

/* ---- remove ---- */

static int remove_from(fixture *f, int base, sbx_err *err) {
  sbx__remover remover;
  bool paused;
  sbx__remover_init(&remover, &f->root, base, "ws");
  int rc = sbx_local_fs_remove(&remover, &paused, err);
  assert_false(paused);
  return rc;
}

static int remove_root(fixture *f, sbx_err *err) {
  return remove_from(f, f->base_fd, err);
}

static bool every_third(void *arg) {
  return ++*(int *)arg % 3 == 0;
}

/* Each pause comes after a few entries, and what is left is gone on with. */
static void test_C190_a_removal_pauses_and_goes_on(void **state) {
  fixture *f = *state;
  sbx__remover remover;
  sbx_err err;
  char name[64];
  int asked = 0, pauses = 0;
  bool paused = true;
  for (int i = 0; i < 40; i++) {
    snprintf(name, sizeof name, "a/%d/b/c%d", i % 7, i);
    assert_int_equal(write_file(f, name, "x"), SBX_OK);
  }
  sbx__remover_init(&remover, &f->root, f->base_fd, "ws");
  remover.pause = every_third;
  remover.arg = &asked;
  for (; paused; pauses += paused)
    assert_int_equal(sbx_local_fs_remove(&remover, &paused, &err), SBX_OK);
  assert_true(pauses > 10);
  assert_int_not_equal(faccessat(f->base_fd, "ws", F_OK, 0), 0);
}

static void test_removes_everything_inside_only(void **state) {
  fixture *f = *state;
  sbx_err err;
  assert_int_equal(write_file(f, "a/b/c/d", "x"), SBX_OK);
  assert_int_equal(write_file(f, "a/.removed-0/x", "x"), SBX_OK);
  assert_int_equal(write_file(f, ".removed-0", "x"), SBX_OK);
  assert_int_equal(write_file(f, ".removed-1/y", "x"), SBX_OK);
  make_dir(f, "a/b/empty");
  link_to(f, "../ws-other", "a/out");
  link_to(f, "/", "slash");
  link_to(f, ".", "self");
  assert_int_equal(mkfifoat(f->root.fd, "a/fifo", 0), 0);
  assert_int_equal(remove_root(f, &err), SBX_OK);
  assert_int_equal(access(f->path, F_OK), -1);
  assert_int_equal(entry_count(f->base_fd, "ws-other"), 1);
  assert_int_equal(remove_root(f, &err), SBX_OK);
}

/* Without the superuser's rights the modes count. */
static void test_removes_what_refuses(void **state) {
  fixture *f = *state;
  sbx_err err;
  assert_int_equal(write_file(f, "a/b/f", "x"), SBX_OK);
  assert_int_equal(write_file(f, "a/c/d/f", "x"), SBX_OK);
  static const char *const dirs[] = {"a/b", "a/c/d", "a/c", "a", "."};
  uid_t nobody = 65534;
  assert_int_equal(chmod(f->base, 0777), 0);
  assert_int_equal(fchmodat(f->root.fd, "a/c/d", 0, 0), 0);
  assert_int_equal(fchmodat(f->root.fd, "a/c", 0, 0), 0);
  assert_int_equal(fchmodat(f->root.fd, "a/b", 0500, 0), 0);
  assert_int_equal(fchmodat(f->root.fd, "a", 0500, 0), 0);
  if (getuid() != 0) {
    assert_int_equal(remove_root(f, &err), SBX_OK);
    return;
  }
  for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++)
    assert_int_equal(fchownat(f->root.fd, dirs[i], nobody, (gid_t)-1, 0), 0);
  pid_t pid = fork();
  if (pid == 0)
    _exit(setuid(nobody) == 0 && remove_root(f, &err) == SBX_OK ? 0 : 1);
  int status = -1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  assert_int_equal(access(f->path, F_OK), -1);
}

static void test_names_what_it_cannot_remove(void **state) {
  fixture *f = *state;
  sbx_err err = {0};
  if (getuid() != 0)
    skip();
  assert_int_equal(write_file(f, "foreign/file", "x"), SBX_OK);
  assert_int_equal(fchmodat(f->root.fd, "foreign", 0755, 0), 0);
  assert_int_equal(fchown(f->root.fd, 65534, (gid_t)-1), 0);
  assert_int_equal(chmod(f->base, 0777), 0);
  pid_t pid = fork();
  if (pid == 0)
    _exit(setuid(65534) == 0 && remove_root(f, &err) == SBX_EPROVIDER &&
                  strstr(err.message, f->path) != NULL
              ? 0
              : 1);
  int status = -1;
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_int_equal(status, 0);
  assert_content(f, "foreign/file", "x");
}

enum { NO_MOUNTS = 77 };

/*
 * In a mount namespace of its own, which ends with the process. The kernel ignores the source and
 * the type here, but valgrind takes NULL for a mistake.
 */
static _Noreturn void remove_with_a_mount(fixture *f) {
  char path[128];
  sbx_err err;
  bool walk = f->root.walk;
  snprintf(path, sizeof path, "%s/inner", f->path);
  if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, "") != 0 ||
      mount(f->outside, path, "none", MS_BIND, "") != 0)
    _exit(NO_MOUNTS);
  int fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int base = open(f->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  sbx_local_root_init(&f->root, fd, f->path);
  f->root.walk = walk;
  int rc = remove_from(f, base, &err);
  _exit(rc == SBX_EPROVIDER && strstr(err.message, "inner") != NULL ? 0 : 1);
}

/* Of the same file system, which only its refusal to move gives away. */
static void test_a_mounted_directory_is_not_emptied(void **state) {
  fixture *f = *state;
  int status = 0;
  assert_int_equal(write_file(f, "inner/x", "x"), SBX_OK);
  pid_t pid = fork();
  if (pid == 0)
    remove_with_a_mount(f);
  assert_int_equal(waitpid(pid, &status, 0), pid);
  assert_true(WIFEXITED(status));
  assert_int_equal(faccessat(f->base_fd, "ws-other/secret", F_OK, 0), 0);
  if (WEXITSTATUS(status) == NO_MOUNTS)
    skip();
  assert_int_equal(WEXITSTATUS(status), 0);
}

static void test_removes_a_very_deep_tree(void **state) {
  fixture *f = *state;
  sbx_err err;
  sbx_listing listing;
  int dir = fcntl(f->root.fd, F_DUPFD_CLOEXEC, 0);
  for (int i = 0; i < 3000; i++) {
    assert_int_equal(mkdirat(dir, "deep", 0700), 0);
    int next = openat(dir, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(next >= 0);
    close(dir);
    dir = next;
  }
  spill(dir, "file", "x");
  close(dir);
  if (!f->root.walk)
    assert_int_equal(sbx_local_fs_list(&f->root, 100, &listing, &err), SBX_ETOOBIG);
  assert_int_equal(remove_root(f, &err), SBX_OK);
  assert_int_equal(access(f->path, F_OK), -1);
}

static void test_leaves_a_moved_workspace_alone(void **state) {
  fixture *f = *state;
  sbx_err err;
  assert_int_equal(write_file(f, "kept", "x"), SBX_OK);
  assert_int_equal(renameat(f->base_fd, "ws", f->base_fd, "mine"), 0);
  assert_int_equal(mkdir(f->path, 0700), 0);
  assert_int_equal(remove_root(f, &err), SBX_OK);
  assert_int_equal(access(f->path, F_OK), 0);
  assert_int_equal(faccessat(f->base_fd, "mine/kept", F_OK, 0), 0);
}

/* ---- what is at a path ---- */

static sbx_stat look_at(fixture *f, const char *path, int expected) {
  sbx_stats stats = {0};
  sbx_err err = {0};
  sbx_stat stat = {0};
  assert_int_equal(sbx_local_fs_stat(&f->root, sbx_slice_str(path), &stats, &err), expected);
  if (expected == SBX_OK) {
    assert_int_equal(stats.count, 1);
    stat = stats.items[0];
  }
  sbx_stats_free(&stats);
  return stat;
}

static int remove_path(fixture *f, const char *path, bool recursive) {
  atomic_bool stop = false;
  sbx_err err;
  return sbx_local_fs_remove_path(&f->root, sbx_slice_str(path), recursive, &stop, &err);
}

static int move_path(fixture *f, const char *from, const char *to) {
  sbx_err err;
  return sbx_local_fs_move(&f->root, sbx_slice_str(from), sbx_slice_str(to), &err);
}

static int make_path(fixture *f, const char *path) {
  sbx_err err;
  return sbx_local_fs_make_dir(&f->root, sbx_slice_str(path), &err);
}

static void test_a_path_is_looked_at(void **state) {
  fixture *f = *state;
  assert_int_equal(write_file(f, "d/f", "12345"), SBX_OK);
  assert_int_equal(symlinkat("d/f", f->root.fd, "in"), 0);
  assert_int_equal(symlinkat("nowhere", f->root.fd, "lost"), 0);
  assert_int_equal(symlinkat(f->outside, f->root.fd, "out"), 0);
  assert_int_equal(look_at(f, "d/f", SBX_OK).size, 5);
  assert_int_equal(look_at(f, "in", SBX_OK).kind, SBX_KIND_FILE);
  assert_int_equal(look_at(f, ".", SBX_OK).kind, SBX_KIND_DIRECTORY);
  assert_int_equal(look_at(f, "lost", SBX_OK).kind, SBX_KIND_LINK);
  assert_int_equal(look_at(f, "out", SBX_OK).kind, SBX_KIND_LINK);
  look_at(f, "absent", SBX_ENOTFOUND);
  look_at(f, "d/f/x", SBX_EINVAL);
  look_at(f, "out/secret", SBX_EPATH);
  look_at(f, "../ws-other/secret", SBX_EPATH);
}

static void test_a_directory_is_listed(void **state) {
  fixture *f = *state;
  sbx_stats stats = {0};
  sbx_err err;
  assert_int_equal(write_file(f, "d/f", "12345"), SBX_OK);
  assert_int_equal(make_path(f, "d/e/g"), SBX_OK);
  assert_int_equal(sbx_local_fs_list_dir(&f->root, sbx_slice_str("d"), 2, &stats, &err), SBX_OK);
  assert_int_equal(stats.count, 2);
  sbx_stats_free(&stats);
  assert_int_equal(sbx_local_fs_list_dir(&f->root, sbx_slice_str("d"), 1, &stats, &err),
                   SBX_ETOOBIG);
  sbx_stats_free(&stats);
  assert_int_equal(sbx_local_fs_list_dir(&f->root, sbx_slice_str("d/f"), 1, &stats, &err),
                   SBX_EINVAL);
  assert_int_equal(sbx_local_fs_list_dir(&f->root, sbx_slice_str("x"), 1, &stats, &err),
                   SBX_ENOTFOUND);
}

static void test_a_path_is_removed(void **state) {
  fixture *f = *state;
  atomic_bool stop = true;
  sbx_err err;
  assert_int_equal(write_file(f, "d/e/f", "1"), SBX_OK);
  assert_int_equal(symlinkat(f->outside, f->root.fd, "d/out"), 0);
  assert_int_equal(symlinkat(f->outside, f->root.fd, "out"), 0);
  assert_int_equal(remove_path(f, "d", false), SBX_EINVAL);
  assert_int_equal(remove_path(f, ".", true), SBX_EINVAL);
  assert_int_equal(remove_path(f, "out/secret", false), SBX_EPATH);
  assert_int_equal(sbx_local_fs_remove_path(&f->root, sbx_slice_str("d"), true, &stop, &err),
                   SBX_ECANCELED);
  assert_int_equal(remove_path(f, "d", true), SBX_OK);
  assert_int_equal(remove_path(f, "d", true), SBX_ENOTFOUND);
  assert_int_equal(remove_path(f, "out", true), SBX_OK);
  assert_int_equal(faccessat(f->base_fd, "ws-other/secret", F_OK, 0), 0);
}

static sbx_path_request joined(const char *piece, const char *all, uint64_t offset, size_t length) {
  return (sbx_path_request){
      .path = sbx_slice_str(piece), .to = sbx_slice_str(all), .offset = offset, .length = length};
}

static void test_a_file_is_made_of_parts(void **state) {
  fixture *f = *state;
  atomic_bool stop = true;
  sbx_err err;
  sbx_path_request request = joined("piece", "all", 3, 4);
  spill(f->root.fd, "all", "one");
  spill(f->root.fd, "piece", "four");
  assert_int_equal(sbx_local_fs_join(&f->root, &request, &stop, &err), SBX_ECANCELED);
  /* What was begun is written over. */
  assert_int_equal(sbx_local_fs_join(&f->root, &request, NULL, &err), SBX_OK);
  assert_int_equal(sbx_local_fs_join(&f->root, &request, NULL, &err), SBX_OK);
  assert_int_equal(faccessat(f->root.fd, "piece", F_OK, 0), -1);
  request = joined("piece", "all", 8, 1);
  spill(f->root.fd, "piece", "x");
  assert_int_equal(sbx_local_fs_join(&f->root, &request, NULL, &err), SBX_ECONFLICT);
  request = joined("all", "new", 0, 0);
  assert_int_equal(sbx_local_fs_take(&f->root, &request, &stop, &err), SBX_ECANCELED);
  assert_int_equal(sbx_local_fs_take(&f->root, &request, NULL, &err), SBX_OK);
  assert_int_equal(sbx_local_fs_take(&f->root, &request, NULL, &err), SBX_ECONFLICT);
  sbx_stats stats = {0};
  request = (sbx_path_request){.path = sbx_slice_str("new"), .offset = 2, .length = 3};
  assert_int_equal(sbx_local_fs_part(&f->root, &request, &stats, &err), SBX_OK);
  assert_memory_equal(stats.part.ptr, "efo", 3);
  assert_int_equal(stats.items[0].size, 7);
  sbx_stats_free(&stats);
}

/* Whatever a command puts in the place of a part, nothing is read or written through it. */
static void test_parts_never_lead_out(void **state) {
  fixture *f = *state;
  char secret[sizeof f->outside + 8];
  sbx_err err;
  snprintf(secret, sizeof secret, "%s/secret", f->outside);
  spill(f->root.fd, "all", "one");
  spill(f->root.fd, "piece", "four");
  assert_int_equal(symlinkat(secret, f->root.fd, "link"), 0);
  assert_int_equal(mkfifoat(f->root.fd, "pipe", 0600), 0);
  assert_int_equal(mkdirat(f->root.fd, "dir", 0700), 0);
  static const char *const others[] = {"link", "pipe", "dir", "absent"};
  for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
    sbx_path_request as_piece = joined(others[i], "all", 3, 4);
    sbx_path_request as_all = joined("piece", others[i], 3, 4);
    sbx_path_request taken = joined(others[i], "new", 0, 0);
    assert_int_not_equal(sbx_local_fs_join(&f->root, &as_piece, NULL, &err), SBX_OK);
    assert_int_not_equal(sbx_local_fs_join(&f->root, &as_all, NULL, &err), SBX_OK);
    assert_int_not_equal(sbx_local_fs_take(&f->root, &taken, NULL, &err), SBX_OK);
  }
  sbx_path_request out = joined("piece", "link", 0, 0);
  assert_int_equal(sbx_local_fs_take(&f->root, &out, NULL, &err), SBX_EPATH);
  assert_int_equal(faccessat(f->root.fd, "new", F_OK, 0), -1);
}

static void test_a_path_is_moved(void **state) {
  fixture *f = *state;
  assert_int_equal(write_file(f, "d/f", "1"), SBX_OK);
  assert_int_equal(write_file(f, "g", "2"), SBX_OK);
  assert_int_equal(symlinkat(f->outside, f->root.fd, "out"), 0);
  assert_int_equal(move_path(f, "d/f", "a/b/f"), SBX_OK);
  assert_int_equal(move_path(f, "g", "a/b/f"), SBX_OK);
  assert_int_equal(move_path(f, "a", "a/b/c/d"), SBX_EINVAL);
  look_at(f, "a/b/c", SBX_ENOTFOUND);
  assert_int_equal(move_path(f, "a/b/f", "d"), SBX_EINVAL);
  assert_int_equal(move_path(f, "a/b/f", "out"), SBX_OK);
  assert_int_equal(look_at(f, "out", SBX_OK).kind, SBX_KIND_FILE);
  assert_int_equal(symlinkat(f->outside, f->root.fd, "way"), 0);
  assert_int_equal(move_path(f, "way/secret", "x"), SBX_EPATH);
  assert_int_equal(move_path(f, "out", "way/x"), SBX_EPATH);
  assert_int_equal(move_path(f, "absent", "n/x"), SBX_ENOTFOUND);
  look_at(f, "n", SBX_ENOTFOUND);
  assert_int_equal(make_path(f, "out/x"), SBX_EINVAL);
  assert_int_equal(make_path(f, "way/x"), SBX_EPATH);
  assert_int_equal(faccessat(f->base_fd, "ws-other/x", F_OK, 0), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int run_all(const char *name) {
  const struct CMUnitTest tests[] = {
      TEST(test_a_path_is_looked_at),
      TEST(test_a_directory_is_listed),
      TEST(test_a_path_is_removed),
      TEST(test_a_path_is_moved),
      TEST(test_a_file_is_made_of_parts),
      TEST(test_parts_never_lead_out),
      TEST(test_writes_and_reads_back),
      TEST(test_refuses_paths_that_leave),
      TEST(test_refuses_names_that_are_no_file),
      TEST(test_refuses_control_characters),
      TEST(test_a_write_that_was_called_off),
      TEST(test_links_that_stay_inside),
      TEST(test_absolute_links_that_stay_inside),
      TEST(test_a_long_path_through_a_link),
      TEST(test_links_through_many_directories),
      TEST(test_links_that_leave),
      TEST(test_links_that_lead_nowhere),
      TEST(test_only_regular_files),
      TEST(test_size_limit),
      TEST(test_bytes_survive),
      TEST(test_replacing_keeps_the_mode),
      TEST(test_a_removed_workspace),
      TEST(test_opens_directories),
      TEST(test_a_swapped_directory_never_leads_out),
      TEST(test_lists_regular_files),
      TEST(test_a_list_leaves_out_what_is_being_written),
      TEST(test_list_without_memory),
      TEST(test_C190_a_removal_pauses_and_goes_on),
      TEST(test_removes_everything_inside_only),
      TEST(test_removes_what_refuses),
      TEST(test_names_what_it_cannot_remove),
      TEST(test_a_mounted_directory_is_not_emptied),
      TEST(test_removes_a_very_deep_tree),
      TEST(test_leaves_a_moved_workspace_alone),
  };
  return cmocka_run_group_tests_name(name, tests, NULL, NULL);
}

int main(void) {
  int failed = run_all("local_fs");
  use_walk = true;
  return failed + run_all("local_fs, walking");
}
