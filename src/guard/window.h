/* window.h - the numbers of an isolated sandbox's own processes.
 *
 * The first process is 1, guards have 2 to 299, commands the numbers from 300 on, which never come
 * down again: so a filter can tell by the number alone whom a command must not signal. */
#ifndef SBX_GUARD_WINDOW_H
#define SBX_GUARD_WINDOW_H

enum { SBX__FIRST_GUARD = 2, SBX__LAST_GUARD = 299 };

#endif
