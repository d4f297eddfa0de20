/* ns.c - the namespaces of an isolated sandbox.
 *
 * Invariant: what runs commands is never the machine's root. Root becomes somebody else before the
 * user namespace is made, or, where it cannot, is refused unless it is somebody else's number on
 * the machine anyway. */
#include "guard/ns.h"

#ifdef __linux__

#include "guard/system.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { INNER_ID = 1000, NR_CLONE3 = 435 };

static const struct space {
  sbx_layer_id layer;
  unsigned flag;
  const char *file;
  const char *limit;
} spaces[] = {
    {SBX_LAYER_USERNS, CLONE_NEWUSER, "/proc/self/ns/user", "user"},
    {SBX_LAYER_MOUNTS, CLONE_NEWNS, "/proc/self/ns/mnt", "mnt"},
    {SBX_LAYER_PIDNS, CLONE_NEWPID, "/proc/self/ns/pid", "pid"},
    {SBX_LAYER_NETNS, CLONE_NEWNET, "/proc/self/ns/net", "net"},
    {SBX_LAYER_IPCNS, CLONE_NEWIPC, "/proc/self/ns/ipc", "ipc"},
    {SBX_LAYER_UTSNS, CLONE_NEWUTS, "/proc/self/ns/uts", "uts"},
    {SBX_LAYER_CGROUPNS, CLONE_NEWCGROUP, "/proc/self/ns/cgroup", "cgroup"},
};
enum { SPACES = sizeof spaces / sizeof *spaces };

void sbx__ns_look(sbx__ns_ids *ids) {
  struct stat st;
  memset(ids, 0, sizeof *ids);
  for (int i = 0; i < SPACES; i++) {
    if (stat(spaces[i].file, &st) == 0)
      ids->of[spaces[i].layer] = st.st_ino;
  }
}

/* ---- ids ------------------------------------------------------------------------------------ */

/* Whether our number 0 is that of the machine's root, as far as the map tells: then there is no
 * other way than to become somebody else. */
static bool is_real_root(void) {
  unsigned long inside = 0, outside = 0;
  FILE *map = fopen("/proc/self/uid_map", "re");
  bool real =
      map == NULL || fscanf(map, "%lu %lu", &inside, &outside) != 2 || outside == 0; /* NOLINT */
  if (map != NULL)
    fclose(map);
  return real;
}

bool sbx__ns_drop(const sbx_guard_setup *setup, sbx_guard_hello *hello) {
  if (geteuid() != 0)
    return true;
  errno = EPERM; /* of a setup that knows nobody else */
  /* The saved ids stay, for the way back. */
  if (setup->uid != 0 && setgroups(0, NULL) == 0 && setresgid(setup->gid, setup->gid, 0) == 0 &&
      setresuid(setup->uid, setup->uid, 0) == 0) {
    prctl(PR_SET_DUMPABLE, 1, 0, 0, 0); /* else the map's file belongs to root */
    return true;
  }
  int error = errno;
  if (!is_real_root())
    return true;
  return sbx__layer_note(hello, SBX_LAYER_USERNS,
                         error == EPERM || error == EINVAL ? SBX_STEP_MAPPED_ROOT : SBX_STEP_DROP,
                         error != 0 ? error : EPERM);
}

void sbx__ns_return(void) {
  uid_t real, effective, saved;
  if (getresuid(&real, &effective, &saved) == 0 && saved == 0 && effective != 0) {
    int ignored = setresuid(0, 0, 0);
    ignored |= setresgid(0, 0, 0);
    (void)ignored;
  }
}

bool sbx__ns_map(const sbx__ns_owner *owner, sbx_guard_hello *hello) {
  char uids[64], gids[64];
  snprintf(uids, sizeof uids, "%d %u 1\n", INNER_ID, (unsigned)owner->uid);
  snprintf(gids, sizeof gids, "%d %u 1\n", INNER_ID, (unsigned)owner->gid);
  int error = sbx__guard_write_file("/proc/self/setgroups", "deny");
  if (error == ENOENT)
    error = 0; /* before 3.19 */
  if (error == 0)
    error = sbx__guard_write_file("/proc/self/uid_map", uids);
  if (error == 0)
    error = sbx__guard_write_file("/proc/self/gid_map", gids);
  if (error == 0 && (setresgid(INNER_ID, INNER_ID, INNER_ID) != 0 ||
                     setresuid(INNER_ID, INNER_ID, INNER_ID) != 0))
    error = errno;
  prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* a change of ids takes it away */
  return sbx__layer_note(hello, SBX_LAYER_USERNS, SBX_STEP_MAP, error);
}

/* ---- fork ----------------------------------------------------------------------------------- */

typedef struct clone_arguments {
  uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
      set_tid_size, cgroup;
} clone_arguments;

static pid_t fork_with(unsigned flags) {
  clone_arguments args = {.flags = flags, .exit_signal = SIGCHLD};
  pid_t pid = (pid_t)syscall(NR_CLONE3, &args, sizeof args);
  /* Before 5.3, and where a container's filter wants to see the flags. */
  if (pid < 0 && errno == ENOSYS)
    pid = (pid_t)syscall(SYS_clone, (unsigned long)flags | SIGCHLD, 0, 0, 0, 0);
  return pid;
}

pid_t sbx__ns_fork_as(pid_t number) {
  pid_t wanted[1] = {number};
  clone_arguments args = {
      .exit_signal = SIGCHLD, .set_tid = (uint64_t)(uintptr_t)wanted, .set_tid_size = 1};
  return number == 0 ? fork() : (pid_t)syscall(NR_CLONE3, &args, sizeof args);
}

static unsigned wanted_flags(const sbx_guard_setup *setup) {
  unsigned flags = 0;
  for (int i = 0; i < SPACES; i++) {
    if (spaces[i].flag != CLONE_NEWNET || setup->network != SBX_GUARD_NET_ON)
      flags |= spaces[i].flag;
  }
  return flags;
}

/* What one flag alone comes to. */
static int try_flags(unsigned flags) {
  pid_t pid = fork_with(flags);
  if (pid == 0)
    _exit(0);
  if (pid < 0)
    return errno;
  waitpid(pid, NULL, 0);
  return 0;
}

/* Why all together have failed. */
static void blame(const sbx_guard_setup *setup, sbx_guard_hello *hello, int error) {
  unsigned wanted = wanted_flags(setup);
  bool found = false;
  for (int i = 0; i < SPACES && !(found && i == 1); i++) {
    const struct space *s = &spaces[i];
    int alone = (wanted & s->flag) != 0 ? try_flags(CLONE_NEWUSER | s->flag) : 0;
    if (alone != 0)
      sbx__layer_note(hello, s->layer, alone == ENOSPC ? SBX_STEP_LIMIT : SBX_STEP_CLONE, alone);
    found = found || alone != 0;
  }
  if (!found)
    sbx__layer_note(hello, SBX_LAYER_USERNS, SBX_STEP_CLONE, error);
}

pid_t sbx__ns_fork(const sbx_guard_setup *setup, sbx_guard_hello *hello) {
  pid_t pid = fork_with(wanted_flags(setup));
  if (pid < 0)
    blame(setup, hello, errno);
  return pid;
}

/* ---- inside --------------------------------------------------------------------------------- */

void sbx__ns_check(const sbx_guard_setup *setup, const sbx__ns_ids *before,
                   sbx_guard_hello *hello) {
  unsigned wanted = wanted_flags(setup);
  sbx__ns_ids now;
  sbx__ns_look(&now);
  for (int i = 0; i < SPACES; i++) {
    const struct space *s = &spaces[i];
    bool known = before->of[s->layer] != 0 && now.of[s->layer] != 0;
    bool same = before->of[s->layer] == now.of[s->layer];
    if (s->flag == CLONE_NEWPID)
      same = getpid() != 1;
    if ((wanted & s->flag) == 0)
      sbx__layer_set(hello, s->layer, SBX_LAYER_OFF, SBX_STEP_UNTRIED, 0, 0);
    else
      sbx__layer_note(hello, s->layer, SBX_STEP_VERIFIED, known && same ? EEXIST : 0);
  }
}

static int loopback_up(void) {
  struct ifreq request;
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0)
    return errno;
  memset(&request, 0, sizeof request);
  memcpy(request.ifr_name, "lo", 3);
  int error = ioctl(fd, SIOCGIFFLAGS, &request) == 0 ? 0 : errno;
  request.ifr_flags |= IFF_UP;
  if (error == 0 && ioctl(fd, SIOCSIFFLAGS, &request) != 0)
    error = errno;
  close(fd);
  return error;
}

/* Whether the loopback is all that there is. */
static int only_loopback(void) {
  struct if_nameindex *list = if_nameindex();
  if (list == NULL)
    return errno;
  int error = 0;
  for (const struct if_nameindex *i = list; i->if_name != NULL; i++)
    error = strcmp(i->if_name, "lo") == 0 ? error : EEXIST;
  if_freenameindex(list);
  return error;
}

void sbx__ns_furnish(const sbx_guard_setup *setup, sbx_guard_hello *hello) {
  static const char name[] = "sandbox";
  if (setup->network != SBX_GUARD_NET_ON) {
    int error = loopback_up();
    if (error != 0)
      sbx__layer_note(hello, SBX_LAYER_NETNS, SBX_STEP_LOOPBACK, error);
    else if ((error = only_loopback()) != 0)
      sbx__layer_note(hello, SBX_LAYER_NETNS, SBX_STEP_VERIFIED, error);
  }
  if (sethostname(name, sizeof name - 1) != 0)
    sbx__layer_note(hello, SBX_LAYER_UTSNS, SBX_STEP_SET, errno);
  /* Neither the host's session keyring nor one that an earlier sandbox had. */
  bool joined = syscall(SYS_keyctl, 1 /* JOIN_SESSION_KEYRING */, NULL, 0, 0, 0) >= 0;
  sbx__layer_note(hello, SBX_LAYER_KEYRING, SBX_STEP_SET, joined || errno == ENOSYS ? 0 : errno);
  pid_t session = setsid();
  sbx__layer_note(hello, SBX_LAYER_SESSION, SBX_STEP_SET, session == getpid() ? 0 : errno);
}

void sbx__ns_kill_all(void) {
  /* Anywhere else this would be everybody's end. */
  if (getpid() != 1)
    abort();
  kill(-1, SIGKILL);
}

#endif
