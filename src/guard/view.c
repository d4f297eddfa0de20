/* view.c - the file system that an isolated sandbox sees.
 *
 * A new root in memory with the system's programs, devices that cannot do harm, a /proc of its own,
 * the workspace, and what is temporary. The host's root is not in it: a key, a socket or a home
 * that is not there needs no rule that forbids it.
 *
 * Invariant: nothing but the workspace, the temporary directories and five devices can be written,
 * and no set-user-id program or device works on what a command can write. */
#include "guard/view.h"

#ifdef __linux__

#include "guard/system.h"
#include "guard/window.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  NR_OPEN_TREE = 428,
  NR_MOVE_MOUNT = 429,
  NR_MOUNT_SETATTR = 442,
  TREE_CLONE = 1,      /* OPEN_TREE_CLONE */
  FROM_EMPTY_PATH = 4, /* MOVE_MOUNT_F_EMPTY_PATH */
  RECURSIVE = 0x8000,  /* AT_RECURSIVE */
  PATH_ROOM = 4096
};

#define WATCHERS "16" /* of the 128 that a user has for all */
#define WATCHES "65536"

/* MOUNT_ATTR_... */
enum { READ_ONLY = 1, NO_SUID = 2, NO_DEV = 4, NO_EXEC = 8 };

typedef struct attributes {
  uint64_t set, clear, propagation, userns;
} attributes;

/* Until the new root is the root it hangs here, and all paths in it are relative. */
#define STAGE "/usr"

/* ---- single mounts -------------------------------------------------------------------------- */

/* A detached copy of what is mounted at a path, with all below it. -1 and errno. */
static int take(const char *path, unsigned set, bool tree) {
  unsigned flags = TREE_CLONE | O_CLOEXEC | (tree ? RECURSIVE : 0U);
  attributes a = {.set = set};
  int fd = (int)syscall(NR_OPEN_TREE, AT_FDCWD, path, flags);
  if (fd < 0)
    return -1;
  if (set != 0 && syscall(NR_MOUNT_SETATTR, fd, "", AT_EMPTY_PATH | (tree ? RECURSIVE : 0), &a,
                          sizeof a) != 0) {
    int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

/* Closes the copy. */
static int put(int fd, const char *to) {
  if (fd < 0)
    return errno;
  int error = syscall(NR_MOVE_MOUNT, fd, "", AT_FDCWD, to, FROM_EMPTY_PATH) == 0 ? 0 : errno;
  close(fd);
  return error;
}

static int change(const char *path, unsigned set) {
  attributes a = {.set = set};
  return syscall(NR_MOUNT_SETATTR, AT_FDCWD, path, 0, &a, sizeof a) == 0 ? 0 : errno;
}

static int make_dir(const char *path, mode_t mode) {
  if (mkdir(path, mode) != 0 && errno != EEXIST)
    return errno;
  return chmod(path, mode) == 0 ? 0 : errno;
}

static int make_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0)
    return errno;
  size_t len = strlen(text);
  int error = write(fd, text, len) == (ssize_t)len ? 0 : errno;
  close(fd);
  return error;
}

/* What a mount needs to hang on: a directory or a file, with all directories above it. */
static int make_point(int fd, const char *to) {
  char path[PATH_ROOM];
  struct stat st, there;
  if (strlen(to) >= sizeof path || fstat(fd, &st) != 0)
    return ENAMETOOLONG;
  snprintf(path, sizeof path, "%s", to);
  for (char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
    *slash = '\0';
    if (mkdir(path, 0755) != 0 && errno != EEXIST && errno != EROFS)
      return errno;
    *slash = '/';
  }
  if (stat(to, &there) == 0)
    return 0;
  return S_ISDIR(st.st_mode) ? make_dir(to, 0755) : make_file(to, "");
}

static int hang(int fd, const char *to) {
  if (fd < 0)
    return errno;
  int error = make_point(fd, to);
  if (error != 0) {
    close(fd);
    return error;
  }
  return put(fd, to);
}

static int tmpfs(const char *to, const char *options, unsigned long flags) {
  return mount("tmpfs", to, "tmpfs", MS_NOSUID | MS_NODEV | flags, options) == 0 ? 0 : errno;
}

/* ---- parts of the view ---------------------------------------------------------------------- */

/* Where the host's /bin and so on are links into /usr they are links here, else mounts. */
static int add_programs(int usr) {
  static const char *const names[] = {"bin", "sbin", "lib", "lib32", "lib64", "libx32"};
  char from[16], target[256];
  int error = hang(usr, "usr");
  for (size_t i = 0; error == 0 && i < sizeof names / sizeof *names; i++) {
    snprintf(from, sizeof from, "/%s", names[i]);
    ssize_t n = readlink(from, target, sizeof target - 1);
    if (n > 0) {
      target[n] = '\0';
      error = symlink(target, names[i]) == 0 ? 0 : errno;
    } else if (access(from, F_OK) == 0) {
      error = hang(take(from, READ_ONLY | NO_SUID | NO_DEV, true), names[i]);
    }
  }
  return error;
}

/* Who is who is our own text: the host's users are nobody's business here. */
static int add_etc(const sbx_guard_setup *setup) {
  static const char *const shared[] = {
      "ssl",        "pki",          "ca-certificates", "crypto-policies", "alternatives",
      "ld.so.conf", "ld.so.conf.d", "ld.so.cache",     "localtime",       "mime.types",
      "services",   "protocols",    "terminfo",        "fonts",           "gai.conf"};
  char from[64];
  int error = make_dir("etc", 0755);
  if (error == 0)
    error = make_file("etc/passwd", "root:x:0:0:root:/root:/usr/sbin/nologin\n"
                                    "nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n"
                                    "sandbox:x:1000:1000:sandbox:" SBX_GUARD_HOME ":/bin/sh\n");
  if (error == 0)
    error = make_file("etc/group", "root:x:0:\nnogroup:x:65534:\nsandbox:x:1000:\n");
  if (error == 0)
    error = make_file("etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n");
  if (error == 0)
    error = make_file("etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n");
  for (size_t i = 0; error == 0 && i < sizeof shared / sizeof *shared; i++) {
    snprintf(from, sizeof from, "/etc/%s", shared[i]);
    if (access(from, R_OK) == 0)
      error = hang(take(from, READ_ONLY | NO_SUID | NO_DEV, true), from + 1);
  }
  if (error == 0 && setup->network == SBX_GUARD_NET_ON && access("/etc/resolv.conf", R_OK) == 0)
    error = hang(take("/etc/resolv.conf", READ_ONLY | NO_SUID | NO_DEV, true), "etc/resolv.conf");
  return error;
}

static int add_devices(const char *size) {
  static const char *const nodes[] = {"null", "zero", "full", "random", "urandom"};
  static const char *const links[][2] = {{"/proc/self/fd", "dev/fd"},
                                         {"/proc/self/fd/0", "dev/stdin"},
                                         {"/proc/self/fd/1", "dev/stdout"},
                                         {"/proc/self/fd/2", "dev/stderr"}};
  char from[32];
  int error = make_dir("dev", 0755);
  if (error == 0)
    error = tmpfs("dev", "size=64k,nr_inodes=64,mode=755", MS_NOEXEC);
  for (size_t i = 0; error == 0 && i < sizeof nodes / sizeof *nodes; i++) {
    snprintf(from, sizeof from, "/dev/%s", nodes[i]);
    error = hang(take(from, NO_SUID | NO_EXEC, false), from + 1);
  }
  for (size_t i = 0; error == 0 && i < sizeof links / sizeof *links; i++)
    error = symlink(links[i][0], links[i][1]) == 0 ? 0 : errno;
  if (error == 0)
    error = make_dir("dev/shm", 01777);
  if (error == 0)
    error = tmpfs("dev/shm", size, MS_NOEXEC);
  /* Not what hangs in it; and devices on it must go on working. */
  return error == 0 ? change("dev", READ_ONLY) : error;
}

/* One file system in memory with one limit: a part is /tmp, another one the home. */
static int add_temporary(const char *size) {
  int error = make_dir("tmp", 0755);
  if (error == 0)
    error = tmpfs("tmp", size, 0);
  if (error == 0)
    error = make_dir("tmp/tmp", 01777);
  if (error == 0)
    error = make_dir("tmp/home", 0700);
  if (error == 0)
    error = hang(take("tmp/home", NO_SUID | NO_DEV, false), &SBX_GUARD_HOME[1]);
  if (error == 0)
    error = put(take("tmp/tmp", NO_SUID | NO_DEV, false), "tmp");
  return error;
}

/* What could change or tell something about the machine. */
static int cover_proc(void) {
  static const char *const frozen[] = {"proc/sys", "proc/sysrq-trigger", "proc/irq", "proc/bus",
                                       "proc/fs"};
  static const char *const hidden[] = {"proc/kcore",      "proc/keys",      "proc/kallsyms",
                                       "proc/timer_list", "proc/cmdline",   "proc/key-users",
                                       "proc/kmsg",       "proc/interrupts"};
  int error = 0;
  for (size_t i = 0; error == 0 && i < sizeof frozen / sizeof *frozen; i++) {
    if (access(frozen[i], F_OK) == 0)
      error = put(take(frozen[i], READ_ONLY, true), frozen[i]);
  }
  for (size_t i = 0; error == 0 && i < sizeof hidden / sizeof *hidden; i++) {
    if (access(hidden[i], F_OK) == 0)
      error = put(take("dev/null", NO_SUID | NO_EXEC, false), hidden[i]);
  }
  return error;
}

/* Without a /proc of its own the directory stays empty. The numbers of commands begin behind those
 * of the guards. */
static int add_proc(sbx_guard_hello *hello) {
  char last[16];
  int error = make_dir("proc", 0555);
  if (error != 0)
    return error;
  bool mounted = mount("proc", "proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) == 0;
  if (!sbx__layer_note(hello, SBX_LAYER_PROCFS, SBX_STEP_PROC, mounted ? 0 : errno))
    return 0;
  snprintf(last, sizeof last, "%d", SBX__LAST_GUARD);
  error = sbx__guard_write_file("proc/sys/kernel/ns_last_pid", last);
  if (error != 0)
    sbx__layer_set(hello, SBX_LAYER_PIDNS, SBX_LAYER_PARTIAL, SBX_STEP_WINDOW, error, 0);
  /* Of the user's, who is on the machine, too. */
  (void)sbx__guard_write_file("proc/sys/user/max_inotify_instances", WATCHERS);
  (void)sbx__guard_write_file("proc/sys/user/max_inotify_watches", WATCHES);
  error = cover_proc();
  if (error != 0)
    sbx__layer_note(hello, SBX_LAYER_PROCFS, SBX_STEP_MOUNT, error);
  return 0;
}

/* ---- the whole ------------------------------------------------------------------------------ */

void sbx__view_take(const sbx__view *view) {
  for (size_t i = 0; i < view->count; i++) {
    sbx__view_mount *m = &view->mounts[i];
    if (m->fd < 0)
      m->fd = take(m->from, READ_ONLY | NO_SUID | NO_DEV, true);
  }
}

static int add_mounts(const sbx__view *view) {
  int error = 0;
  for (size_t i = 0; error == 0 && i < view->count; i++) {
    sbx__view_mount *m = &view->mounts[i];
    if (m->fd >= 0)
      error = hang(m->fd, m->to + 1);
    m->fd = -1;
  }
  return error;
}

static int enter_root(void) {
  int error = change(".", READ_ONLY | NO_SUID | NO_DEV);
  /* Both at one place: the old root lies on top, and is taken away. */
  if (error == 0 && syscall(SYS_pivot_root, ".", ".") != 0)
    error = errno;
  if (error == 0 && umount2(".", MNT_DETACH) != 0)
    error = errno;
  return error == 0 && chdir("/") != 0 ? errno : error;
}

/* All that is behind STAGE is taken before it is covered. */
static int stage(const sbx__view *view, int *workspace, int *usr) {
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
    return errno;
  *workspace = take(".", NO_SUID | NO_DEV, true);
  if (*workspace < 0)
    return errno;
  sbx__view_take(view);
  *usr = take("/usr", READ_ONLY | NO_SUID | NO_DEV, true);
  if (*usr < 0)
    return errno;
  int error = tmpfs(STAGE, "size=1m,nr_inodes=1024,mode=755", 0);
  return error == 0 && chdir(STAGE) != 0 ? errno : error;
}

bool sbx__view_enter(const sbx__view *view, const sbx_guard_setup *setup, sbx_guard_hello *hello) {
  char size[96];
  int workspace = -1, usr = -1;
  snprintf(size, sizeof size, "size=%llu,nr_inodes=%llu,mode=1777",
           (unsigned long long)setup->temp_bytes,
           (unsigned long long)setup->temp_bytes / 4096 + 64);
  umask(022);
  int error = stage(view, &workspace, &usr);
  if (error == 0)
    error = add_programs(usr);
  if (error == 0)
    error = add_etc(setup);
  if (error == 0)
    error = add_devices(size);
  if (error == 0)
    error = add_temporary(size);
  if (error == 0)
    error = add_mounts(view);
  if (error == 0)
    error = hang(workspace, &SBX_GUARD_WORKSPACE[1]);
  if (error == 0)
    error = add_proc(hello);
  if (error == 0)
    error = enter_root();
  umask(022);
  return sbx__layer_note(hello, SBX_LAYER_MOUNTS, SBX_STEP_MOUNT, error);
}

#endif
