/* seccomp_tables.c - the rules of the filters, by system call. */
#include "guard/seccomp_tables.h"

#if defined(__linux__) && defined(SBX__SECCOMP_ARCH)

#include "guard/window.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The halves of an argument; both architectures are little-endian. */
#define LOW(n) ((uint32_t)(offsetof(struct seccomp_data, args) + sizeof(uint64_t) * (n)))
#define HIGH(n) (LOW(n) + 4U)

#define LOAD(at) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at)
#define IF(op, value, yes, no) BPF_JUMP(BPF_JMP | (op) | BPF_K, (uint32_t)(value), yes, no)
#define AND(value) BPF_STMT(BPF_ALU | BPF_AND | BPF_K, (uint32_t)(value))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define FAIL(error) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (error))

#define RULE(number, code)                                                                         \
  { (number), sizeof(code) / sizeof *(code), (code) }

/* ---- the main filter ------------------------------------------------------------------------ */

static const struct sock_filter deny[] = {FAIL(EPERM)};

/* Local sockets, IP, and the routing part of netlink, which libraries ask for their addresses. */
static const struct sock_filter socket_families[] = {
    LOAD(LOW(0)),
    IF(BPF_JEQ, AF_UNIX, 5, 0),
    IF(BPF_JEQ, AF_INET, 4, 0),
    IF(BPF_JEQ, AF_INET6, 3, 0),
    IF(BPF_JEQ, AF_NETLINK, 0, 3),
    LOAD(LOW(2)),
    IF(BPF_JEQ, 0, 0, 1),
    ALLOW,
    FAIL(EAFNOSUPPORT),
};

/* Typing into a terminal; and F_SETOWN by another name, whose number is behind a pointer. The
 * kernel looks at 32 bits of the request only. */
static const struct sock_filter controls[] = {
    LOAD(LOW(1)),
    IF(BPF_JEQ, 0x5412 /* TIOCSTI */, 3, 0),
    IF(BPF_JEQ, 0x541C /* TIOCLINUX */, 2, 0),
    IF(BPF_JEQ, 0x8901 /* FIOSETOWN */, 1, 0),
    IF(BPF_JEQ, 0x8902 /* SIOCSPGRP */, 0, 1),
    FAIL(EPERM),
    ALLOW,
};

/* Limits of another process: equal ids are all that the kernel asks for. */
static const struct sock_filter foreign_limits[] = {
    LOAD(LOW(0)),  IF(BPF_JEQ, 0, 4, 0), LOAD(LOW(2)), IF(BPF_JEQ, 0, 0, 3),
    LOAD(HIGH(2)), IF(BPF_JEQ, 0, 0, 1), ALLOW,        FAIL(EPERM),
};

/* On the machine a workspace's file has these bits, too: whoever may start it there would become
 * its owner, who is the user that runs the host. */
#define MARKS (S_ISUID | S_ISGID)
#define UNMARKED(n) LOAD(LOW(n)), IF(BPF_JSET, MARKS, 0, 1), FAIL(EPERM), ALLOW
/* A mode counts only when something is made. */
#define MADE_UNMARKED(n)                                                                           \
  LOAD(LOW(n)), IF(BPF_JSET, O_CREAT | TEMPORARY, 0, 3), LOAD(LOW((n) + 1)),                       \
      IF(BPF_JSET, MARKS, 0, 1), FAIL(EPERM), ALLOW
enum { TEMPORARY = 020000000 /* of O_TMPFILE, the part that is not O_DIRECTORY */ };
static const struct sock_filter unmarked_1[] = {UNMARKED(1)};
static const struct sock_filter unmarked_2[] = {UNMARKED(2)};
static const struct sock_filter opened_at[] = {MADE_UNMARKED(2)};

#define DEVICES(n)                                                                                 \
  LOAD(LOW(n)), IF(BPF_JSET, MARKS, 3, 0), AND(S_IFMT), IF(BPF_JEQ, S_IFCHR, 1, 0),                \
      IF(BPF_JEQ, S_IFBLK, 0, 1), FAIL(EPERM), ALLOW
static const struct sock_filter devices_at[] = {DEVICES(2)};
#ifdef __x86_64__
static const struct sock_filter devices[] = {DEVICES(1)};
static const struct sock_filter opened[] = {MADE_UNMARKED(1)};
#endif

/* What System V keeps belongs to no process: no limit of memory sees it, and it outlives its
 * command. There may be 4,096 segments and 32,000 sets of semaphores and queues, so each is kept
 * small; databases ask for a few bytes, to see each other. */
enum { SEGMENT_BYTES = 16384, SEMAPHORES = 32 };
static const struct sock_filter small_segment[] = {
    LOAD(HIGH(1)), IF(BPF_JEQ, 0, 0, 2),
    LOAD(LOW(1)),  IF(BPF_JGT, SEGMENT_BYTES, 0, 1),
    FAIL(ENOSPC),  ALLOW,
};
static const struct sock_filter few_semaphores[] = {
    LOAD(LOW(1)),
    IF(BPF_JGT, SEMAPHORES, 0, 1),
    FAIL(ENOSPC),
    ALLOW,
};
static const struct sock_filter no_room[] = {FAIL(ENOSPC)};

/* What is behind a pointer, or libraries can do without. */
static const struct sock_filter missing[] = {FAIL(ENOSYS)};

/* Asking which it is, and the usual one. */
static const struct sock_filter personalities[] = {
    LOAD(LOW(0)), IF(BPF_JEQ, 0xffffffff, 1, 0), IF(BPF_JEQ, 0, 0, 1), ALLOW, FAIL(EPERM),
};

/* Newer than the headers that this may be built with; the numbers are the same everywhere. */
enum {
  NR_OPEN_TREE = 428,
  NR_MOVE_MOUNT = 429,
  NR_FSOPEN = 430,
  NR_FSCONFIG = 431,
  NR_FSMOUNT = 432,
  NR_FSPICK = 433,
  NR_PIDFD_OPEN = 434,
  NR_CLONE3 = 435,
  NR_OPENAT2 = 437,
  NR_PIDFD_GETFD = 438,
  NR_PROCESS_MADVISE = 440,
  NR_MOUNT_SETATTR = 442,
  NR_QUOTACTL_FD = 443,
  NR_FCHMODAT2 = 452,
  NR_OPEN_TREE_ATTR = 467
};

#define DENY(number)                                                                               \
  { (number), 1, deny }

const sbx__seccomp_rule sbx__seccomp_main_rules[] = {
    /* mounts and namespaces */
    DENY(SYS_mount),
    DENY(SYS_umount2),
    DENY(SYS_pivot_root),
    DENY(SYS_chroot),
    DENY(NR_OPEN_TREE),
    DENY(NR_OPEN_TREE_ATTR),
    DENY(NR_MOVE_MOUNT),
    DENY(NR_FSOPEN),
    DENY(NR_FSCONFIG),
    DENY(NR_FSMOUNT),
    DENY(NR_FSPICK),
    DENY(NR_MOUNT_SETATTR),
    DENY(SYS_unshare),
    DENY(SYS_setns),
    /* other processes */
    DENY(SYS_ptrace),
    DENY(SYS_process_vm_readv),
    DENY(SYS_process_vm_writev),
    DENY(NR_PROCESS_MADVISE),
    DENY(SYS_kcmp),
    DENY(NR_PIDFD_GETFD),
    RULE(SYS_prlimit64, foreign_limits),
    /* large parts of the kernel that few programs need */
    DENY(SYS_bpf),
    DENY(SYS_perf_event_open),
    DENY(SYS_userfaultfd),
    DENY(425), /* io_uring_setup */
    DENY(426), /* io_uring_enter */
    DENY(427), /* io_uring_register */
    DENY(SYS_add_key),
    DENY(SYS_keyctl),
    DENY(SYS_request_key),
    DENY(SYS_fanotify_init),
    DENY(SYS_lookup_dcookie),
    DENY(SYS_open_by_handle_at),
    DENY(SYS_name_to_handle_at),
    DENY(SYS_mbind),
    DENY(SYS_set_mempolicy),
    DENY(SYS_migrate_pages),
    DENY(SYS_move_pages),
    DENY(SYS_nfsservctl),
    RULE(SYS_socket, socket_families),
    RULE(SYS_socketpair, socket_families),
    RULE(SYS_ioctl, controls),
    /* files */
    RULE(SYS_mknodat, devices_at),
    RULE(SYS_fchmod, unmarked_1),
    RULE(SYS_fchmodat, unmarked_2),
    RULE(NR_FCHMODAT2, unmarked_2),
    RULE(SYS_openat, opened_at),
    RULE(NR_OPENAT2, missing), /* programs go on with openat() */
    RULE(SYS_personality, personalities),
    /* memory without a process */
    RULE(SYS_shmget, small_segment),
    RULE(SYS_semget, few_semaphores),
    RULE(SYS_msgget, no_room),
    /* the machine */
    DENY(SYS_kexec_load),
    DENY(SYS_kexec_file_load),
    DENY(SYS_init_module),
    DENY(SYS_finit_module),
    DENY(SYS_delete_module),
    DENY(SYS_reboot),
    DENY(SYS_swapon),
    DENY(SYS_swapoff),
    DENY(SYS_acct),
    DENY(SYS_quotactl),
    DENY(NR_QUOTACTL_FD),
    DENY(SYS_syslog),
    DENY(SYS_settimeofday),
    DENY(SYS_clock_settime),
    DENY(SYS_clock_adjtime),
    DENY(SYS_adjtimex),
    DENY(SYS_sethostname),
    DENY(SYS_setdomainname),
    DENY(SYS_vhangup),
#ifdef __x86_64__
    DENY(SYS_iopl),
    DENY(SYS_ioperm),
    DENY(SYS_uselib),
    RULE(SYS_mknod, devices),
    RULE(SYS_chmod, unmarked_1),
    RULE(SYS_creat, unmarked_1),
    RULE(SYS_open, opened),
#endif
};
const size_t sbx__seccomp_main_count =
    sizeof sbx__seccomp_main_rules / sizeof *sbx__seccomp_main_rules;

/* ---- the command's filter ------------------------------------------------------------------- */

static const struct sock_filter namespaces[] = {
    LOAD(LOW(0)),
    BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x7E020000 | 0x80 /* CLONE_NEW..., NEWTIME */, 0, 1),
    FAIL(EPERM),
    ALLOW,
};

/* The loaded number is one of `last` first ones: then fail. Leads on to what follows. */
#define UP_TO(last) IF(BPF_JEQ, 0, 2, 0), IF(BPF_JGT, last, 1, 0), FAIL(EPERM)
/* The same of a group: the number is negative. -1 are all processes. */
#define GROUP_UP_TO(last) IF(BPF_JGE, -(last), 0, 1), FAIL(EPERM)

#define TARGET(last) LOAD(LOW(0)), UP_TO(last), GROUP_UP_TO(last), ALLOW
#define TARGETS(last) LOAD(LOW(0)), UP_TO(last), LOAD(LOW(1)), UP_TO(last), ALLOW
static const struct sock_filter window_target[] = {TARGET(SBX__LAST_GUARD)};
static const struct sock_filter window_targets[] = {TARGETS(SBX__LAST_GUARD)};
static const struct sock_filter plain_target[] = {TARGET(1)};
static const struct sock_filter plain_targets[] = {TARGETS(1)};

/* F_SETOWN lets the kernel send signals. A lease on a file of the machine's would hold up who opens
 * it there. */
static const struct sock_filter window_owner[] = {
    LOAD(LOW(1)),
    IF(BPF_JEQ, F_SETLEASE, 9, 0),
    IF(BPF_JEQ, F_NOTIFY, 8, 0),
    IF(BPF_JEQ, F_SETOWN_EX, 7, 0),
    IF(BPF_JEQ, F_SETOWN, 0, 5),
    LOAD(LOW(2)),
    IF(BPF_JEQ, 0, 3, 0),
    IF(BPF_JGE, -SBX__LAST_GUARD, 3, 0),
    IF(BPF_JGT, SBX__LAST_GUARD, 1, 0),
    FAIL(EPERM),
    ALLOW,
    FAIL(EPERM),
};

#define COMMAND_RULES(target, targets)                                                             \
  RULE(NR_CLONE3, missing), RULE(SYS_pidfd_send_signal, missing), RULE(SYS_clone, namespaces),     \
      RULE(SYS_kill, target), RULE(SYS_tkill, target), RULE(SYS_rt_sigqueueinfo, target),          \
      RULE(NR_PIDFD_OPEN, target), RULE(SYS_tgkill, targets),                                      \
      RULE(SYS_rt_tgsigqueueinfo, targets), RULE(SYS_fcntl, window_owner)

const sbx__seccomp_rule sbx__seccomp_window_rules[] = {
    COMMAND_RULES(window_target, window_targets)};
const size_t sbx__seccomp_window_count =
    sizeof sbx__seccomp_window_rules / sizeof *sbx__seccomp_window_rules;
const sbx__seccomp_rule sbx__seccomp_plain_rules[] = {COMMAND_RULES(plain_target, plain_targets)};
const size_t sbx__seccomp_plain_count =
    sizeof sbx__seccomp_plain_rules / sizeof *sbx__seccomp_plain_rules;

#endif
