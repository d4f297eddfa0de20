/* landlock.h - the second wall behind the view: what may be done to which files. */
#ifndef SBX_GUARD_LANDLOCK_H
#define SBX_GUARD_LANDLOCK_H

/* Makes the rules for the paths of the finished view. A descriptor that is closed on exec; -1 and
 * errno where the kernel has no Landlock. `abi` is what it knows. */
int sbx__landlock_make(int *abi);
/* From here on they hold for this thread. 0 or an errno value. */
int sbx__landlock_enter(int rules);

/* The ABI from which on all that is wanted can be had: the scope of abstract sockets. */
enum { SBX__LANDLOCK_WANTED = 6 };

#endif
