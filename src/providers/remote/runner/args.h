/* args.h - a command as arguments of the programs for wires that stream (wrap.sh, bound.sh), in
 * JSON or else. Sans-I/O. */
#ifndef SBX_RUNNER_ARGS_H
#define SBX_RUNNER_ARGS_H

#include "core/json.h"

/* The variable that marks the processes of a command. */
#define SBX_RUNNER_MARK "CLOUDSANDBOX_CALL"

enum { SBX_RUNNER_ARG_MAX = 100 * 1024 }; /* the kernel refuses one of 128 KiB */

/* SBX_EINVAL for what is no UTF-8, and would come out of JSON as something else; SBX_ETOOBIG for a
 * variable that no process can be given. */
int sbx_runner_args_check(const sbx_exec_spec *spec, sbx_err *err);
/* Whether its text has to go another way than as an argument. */
bool sbx_runner_args_is_long(const sbx_exec_spec *spec);
/* What launch.sh takes: KIND and what follows it; a text that goes `elsewhere` as an empty one. */
void sbx_runner_args_each(const sbx_exec_spec *spec, bool elsewhere,
                          void (*fn)(void *arg, sbx_slice word), void *arg);
/* The same as strings of JSON, without a text that is too long. */
void sbx_runner_args_put(sbx_json_out *out, const sbx_exec_spec *spec);
/* Whether one of the variables behind number `i`, or the mark, has the same name. */
bool sbx_runner_args_is_set_again(const sbx_exec_spec *spec, size_t i);

/* Why a program has started nothing: SBX_EINVAL. */
void sbx_runner_no_shell(sbx_err *err, const char *provider, const char *name);
void sbx_runner_no_directory(sbx_err *err, const char *provider, const char *name);

#endif
