/* monitor.h - what stays outside of an isolated sandbox.
 *
 *   node (the host)
 *     | posix_spawn, once per sandbox
 *   monitor        in the machine's namespaces: makes the sandbox's, waits, cleans up
 *     | clone3 with new namespaces
 *   first process  builds the view, then serves requests: see init.h
 *     | clone3, once per command
 *   guard          as without isolation
 *     | vfork and exec, behind the walls of confine.h
 *   the command */
#ifndef SBX_GUARD_MONITOR_H
#define SBX_GUARD_MONITOR_H

/* Runs until nothing of the sandbox is left. Returns the exit code. */
int sbx__monitor_main(void);

#endif
