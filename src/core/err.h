/* err.h - filling sbx_err values. The codes stand in sbx.h. */
#ifndef SBX_ERR_H
#define SBX_ERR_H

#include "sbx.h"

#include <stdarg.h>

/* Remote text never takes more than this of a message. */
#define SBX_ERR_REMOTE_MAX 512

/* Sets code and message (printf style; a NULL format takes the code's default text), clears the
 * other members, cuts the message at a UTF-8 boundary. `err` may be NULL. Returns `code`, so that
 * a caller can write `return sbx_err_set(...)`. */
int sbx_err_set(sbx_err *err, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void sbx_err_clear(sbx_err *err);
/* `to` may be NULL. */
void sbx_err_copy(sbx_err *to, const sbx_err *from);
/* Appends text that came from outside: control characters become spaces, runs of blanks one blank,
 * invalid UTF-8 U+FFFD, at most SBX_ERR_REMOTE_MAX bytes, HTML tags left out. */
void sbx_err_append_remote(sbx_err *err, sbx_slice text);
/* What an errno value means; where descriptors have run out, also what helps. */
const char *sbx_err_system(int error);
/* Whether `error` says that this process or this machine has no descriptor left. It passes. */
bool sbx_err_is_fd_limit(int error);
/* Appends our own text. */
void sbx_err_append(sbx_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
