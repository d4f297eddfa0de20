/* seccomp_tables.h - the rules of the filters, by system call.
 *
 * The numbers are those of the architecture that this is built for; one that is not named here has
 * no table, and so no isolated sandbox. */
#ifndef SBX_GUARD_SECCOMP_TABLES_H
#define SBX_GUARD_SECCOMP_TABLES_H

#ifdef __linux__

#include <linux/audit.h>
#include <linux/filter.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__x86_64__) && !defined(__ILP32__)
#define SBX__SECCOMP_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__) && defined(__AARCH64EL__)
#define SBX__SECCOMP_ARCH AUDIT_ARCH_AARCH64
#endif

/* What is done about one system call: instructions of which each way ends with a return. */
typedef struct sbx__seccomp_rule {
  uint32_t number;
  uint32_t count;
  const struct sock_filter *code;
} sbx__seccomp_rule;

extern const sbx__seccomp_rule sbx__seccomp_main_rules[], sbx__seccomp_window_rules[],
    sbx__seccomp_plain_rules[];
extern const size_t sbx__seccomp_main_count, sbx__seccomp_window_count, sbx__seccomp_plain_count;

#endif

#endif
