/* landlock.c - the second wall behind the view: what may be done to which files.
 *
 * Everything may be read and run, which the view has; the workspace and what is temporary may be
 * changed. Abstract sockets of others are out of reach. Signals are not scoped: each command is a
 * domain of its own, and could not end what an earlier one has started.
 *
 * Invariant: a right is handled only if it stands here: what a newer kernel knows besides must not
 * be denied by accident. */
#include "guard/landlock.h"

#include "guard/isolation.h"

#include <errno.h>

#ifdef __linux__

#include <fcntl.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The headers that this is built with may be older than the kernel that it runs on. */
enum { NR_CREATE_RULESET = 444, NR_ADD_RULE = 445, NR_RESTRICT_SELF = 446 };
enum { CREATE_RULESET_VERSION = 1, RULE_PATH_BENEATH = 1, SCOPE_ABSTRACT_SOCKET = 1 };

#define RIGHT(n) (UINT64_C(1) << (n))
#define EXECUTE RIGHT(0)
#define WRITE_FILE RIGHT(1)
#define READ_FILE RIGHT(2)
#define READ_DIR RIGHT(3)
#define MAKE_CHAR RIGHT(6)
#define MAKE_BLOCK RIGHT(11)
#define ALL_OF_ABI_1 (RIGHT(13) - 1)
#define REFER RIGHT(13)     /* ABI 2 */
#define TRUNCATE RIGHT(14)  /* ABI 3 */
#define IOCTL_DEV RIGHT(15) /* ABI 5 */

#define LOOK (EXECUTE | READ_FILE | READ_DIR)
#define OF_A_FILE (EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV)

typedef struct ruleset {
  uint64_t files;
  uint64_t network;
  uint64_t scoped;
} ruleset;

typedef struct __attribute__((packed)) beneath {
  uint64_t allowed;
  int32_t parent;
} beneath;

typedef struct grant {
  const char *path;
  uint64_t rights;
} grant;

/* What is not there needs no rule. */
static int add(int rules, const grant *g, uint64_t handled) {
  int fd = open(g->path, O_PATH | O_CLOEXEC);
  if (fd < 0)
    return 0;
  beneath rule = {g->rights & handled, fd};
  long rc = syscall(NR_ADD_RULE, rules, RULE_PATH_BENEATH, &rule, 0);
  int error = rc == 0 ? 0 : errno;
  close(fd);
  return error;
}

static uint64_t known(int abi) {
  return ALL_OF_ABI_1 | (abi >= 2 ? REFER : 0) | (abi >= 3 ? TRUNCATE : 0) |
         (abi >= 5 ? IOCTL_DEV : 0);
}

int sbx__landlock_make(int *abi) {
  const uint64_t change = known(100) & ~(MAKE_CHAR | MAKE_BLOCK);
  const uint64_t device = READ_FILE | WRITE_FILE | TRUNCATE | IOCTL_DEV;
  const grant grants[] = {
      {"/", LOOK},
      {SBX_GUARD_WORKSPACE, change},
      {SBX_GUARD_HOME, change},
      {"/tmp", change},
      {"/dev/shm", change},
      {"/dev/null", device & OF_A_FILE},
      {"/dev/zero", device & OF_A_FILE},
      {"/dev/full", device & OF_A_FILE},
      {"/dev/random", device & OF_A_FILE},
      {"/dev/urandom", device & OF_A_FILE},
  };
  *abi = (int)syscall(NR_CREATE_RULESET, NULL, 0, CREATE_RULESET_VERSION);
  if (*abi < 1)
    return -1;
  ruleset attributes = {known(*abi), 0, *abi >= 6 ? SCOPE_ABSTRACT_SOCKET : 0};
  size_t size = *abi >= 6   ? sizeof attributes
                : *abi >= 4 ? offsetof(ruleset, scoped)
                            : offsetof(ruleset, network);
  int rules = (int)syscall(NR_CREATE_RULESET, &attributes, size, 0);
  for (size_t i = 0; rules >= 0 && i < sizeof grants / sizeof *grants; i++) {
    int error = add(rules, &grants[i], attributes.files);
    if (error != 0) {
      close(rules);
      errno = error;
      return -1;
    }
  }
  return rules;
}

int sbx__landlock_enter(int rules) {
  return syscall(NR_RESTRICT_SELF, rules, 0) == 0 ? 0 : errno;
}

#else

int sbx__landlock_make(int *abi) {
  *abi = 0;
  errno = ENOSYS;
  return -1;
}

int sbx__landlock_enter(int rules) {
  (void)rules;
  return ENOSYS;
}

#endif
