/* confine.c - the walls around one command of an isolated sandbox.
 *
 * Invariant: the filter comes last, since it forbids what setting up the rest needs. */
#include "guard/confine.h"

#include <errno.h>

#ifdef __linux__

#include "guard/landlock.h"
#include "guard/seccomp.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
  LOCKED_BYTES = 64 * 1024,
  OPEN_FILES = 1024,
  PENDING_SIGNALS = 1024, /* else a command could use up all that its user may have */
  LAST_CAPABILITY = 63
};

/* Never above what the process has: the host may be limited itself. */
static int limit(unsigned resource, uint64_t value) {
  struct rlimit old, wanted = {value, value};
  if (getrlimit(resource, &old) != 0)
    return errno;
  if (wanted.rlim_max > old.rlim_max)
    wanted = (struct rlimit){old.rlim_max, old.rlim_max};
  return setrlimit(resource, &wanted) == 0 ? 0 : errno;
}

static int set_limits(const sbx_guard_setup *l) {
  const struct {
    unsigned resource;
    bool set;
    uint64_t value;
  } list[] = {
      {RLIMIT_CORE, true, 0},
      {RLIMIT_MEMLOCK, true, LOCKED_BYTES},
      {RLIMIT_MSGQUEUE, true, 0},
      {RLIMIT_NICE, true, 0},
      {RLIMIT_RTPRIO, true, 0},
      {RLIMIT_SIGPENDING, true, PENDING_SIGNALS},
      {RLIMIT_NOFILE, true, l->open_files > 0 ? l->open_files : OPEN_FILES},
      {RLIMIT_NPROC, l->processes > 0, l->processes},
      {RLIMIT_FSIZE, l->file_bytes > 0, l->file_bytes},
      {RLIMIT_CPU, l->cpu_seconds > 0, l->cpu_seconds},
      {RLIMIT_DATA, l->memory_bytes > 0, l->memory_bytes},
  };
  int error = 0;
  for (size_t i = 0; error == 0 && i < sizeof list / sizeof *list; i++)
    error = list[i].set ? limit(list[i].resource, list[i].value) : 0;
  return error;
}

static int drop_capabilities(void) {
  struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct none[2] = {{0, 0, 0}, {0, 0, 0}};
  for (int i = 0; i <= LAST_CAPABILITY; i++) {
    if (prctl(PR_CAPBSET_DROP, i, 0, 0, 0) != 0 && errno != EINVAL)
      return errno;
  }
  if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0 && errno != EINVAL)
    return errno;
  return syscall(SYS_capset, &head, none) == 0 ? 0 : errno;
}

int sbx__confine_enter(const sbx__confine *confine) {
  int error = set_limits(confine->limits);
  if (error == 0)
    error = drop_capabilities();
  if (error == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
    error = errno;
  if (error == 0 && confine->landlock >= 0)
    error = sbx__landlock_enter(confine->landlock);
  if (error == 0 && confine->filter)
    error = sbx__seccomp_load_command();
  return error;
}

#else

int sbx__confine_enter(const sbx__confine *confine) {
  (void)confine;
  return ENOSYS;
}

#endif
