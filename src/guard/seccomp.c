/* seccomp.c - building and loading the two filters.
 *
 * A filter is a search tree over the numbers of system calls, since the kernel runs it for every
 * number when it is loaded: that time grows with its length on each way through.
 *
 * Invariant: whatever is not the machine's own way to call the kernel ends the process, or does not
 * exist: the numbers below mean something else there. */
#include "guard/seccomp.h"

#include "guard/seccomp_tables.h"

#include <errno.h>

#if defined(__linux__) && defined(SBX__SECCOMP_ARCH)

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { MAX_PROGRAM = 1024, MAX_RULES = 160, LEAF = 3 };

typedef struct program {
  struct sock_filter code[MAX_PROGRAM];
  unsigned short len;
  bool overflow;
} program;

static void emit(program *p, struct sock_filter instruction) {
  if (p->len < MAX_PROGRAM)
    p->code[p->len++] = instruction;
  else
    p->overflow = true;
}

static void emit_list(program *p, const struct sock_filter *list, size_t count) {
  for (size_t i = 0; i < count; i++)
    emit(p, list[i]);
}

static int by_number(const void *a, const void *b) {
  const sbx__seccomp_rule *x = a, *y = b;
  return (x->number > y->number) - (x->number < y->number);
}

/* At the end of each way it is allowed. */
static void emit_tree(program *p, const sbx__seccomp_rule *rules, size_t count) {
  if (count <= LEAF) {
    for (size_t i = 0; i < count; i++) {
      const sbx__seccomp_rule *r = &rules[i];
      emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, r->number, 0,
                                           (unsigned char)r->count));
      emit_list(p, r->code, r->count);
    }
    emit(p, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    return;
  }
  size_t half = count / 2;
  emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, rules[half].number, 0, 1));
  unsigned short jump = p->len;
  emit(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 0, 0, 0));
  emit_tree(p, rules, half);
  p->code[jump].k = (unsigned)(p->len - jump - 1);
  emit_tree(p, rules + half, count - half);
}

static int build(program *p, const sbx__seccomp_rule *rules, size_t count) {
  static const struct sock_filter head[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SBX__SECCOMP_ARCH, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef __x86_64__
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1), /* x32 */
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
#endif
  };
  sbx__seccomp_rule sorted[MAX_RULES];
  p->len = 0;
  p->overflow = count > MAX_RULES;
  if (p->overflow)
    return E2BIG;
  memcpy(sorted, rules, count * sizeof *rules);
  qsort(sorted, count, sizeof *sorted, by_number);
  emit_list(p, head, sizeof head / sizeof *head);
  emit_tree(p, sorted, count);
  return p->overflow ? E2BIG : 0;
}

static int load(const program *p) {
  struct sock_fprog filter = {p->len, (struct sock_filter *)(uintptr_t)p->code};
  if (p->len == 0)
    return EINVAL;
  return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0 ? 0 : errno;
}

int sbx__seccomp_load_main(void) {
  static program p;
  int error = build(&p, sbx__seccomp_main_rules, sbx__seccomp_main_count);
  return error == 0 ? load(&p) : error;
}

static program command_program;

int sbx__seccomp_build_command(bool window) {
  return window ? build(&command_program, sbx__seccomp_window_rules, sbx__seccomp_window_count)
                : build(&command_program, sbx__seccomp_plain_rules, sbx__seccomp_plain_count);
}

int sbx__seccomp_load_command(void) {
  return load(&command_program);
}

#else

int sbx__seccomp_load_main(void) {
  return ENOSYS;
}

int sbx__seccomp_build_command(bool window) {
  (void)window;
  return ENOSYS;
}

int sbx__seccomp_load_command(void) {
  return ENOSYS;
}

#endif
