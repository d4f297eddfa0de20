/* command.c - one command as the helper program wants it.
 *
 * Argument list and environment go into a file in memory, long shell text into another one: neither
 * has a limit then, and neither shows in a list of processes. Code is a file in the working
 * directory for as long as it runs, so that it has a name to be started again by; where none can be
 * made it comes on standard input.
 *
 * Invariant: text of the user is never put into text that a shell reads. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"
#include "core/os.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  MAX_ARGUMENT = 100 * 1024, /* the kernel refuses one of 128 KiB */
  MAX_PIPE = 1024 * 1024,    /* what a pipe may hold without a privilege */
  MAX_SPEC = 64 * 1024 * 1024
};

/* Closes the descriptor that the text came on, in the same line, so that line numbers hold. */
#define SCRIPT_PREFIX "exec 9<&-; "
#define SCRIPT_LOADER ". /dev/fd/9"

void sbx__command_init(sbx__command *command) {
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++)
    command->fd[i] = -1;
  command->main_dir = -1;
}

void sbx__command_end(sbx__command *command, bool removed) {
  sbx__command_close(command);
  if (command->main_dir >= 0 && !removed)
    unlinkat(command->main_dir, command->main_name, 0);
  sbx__close_fd(&command->main_dir);
}

void sbx__command_close(sbx__command *command) {
  for (int i = 0; i < SBX_GUARD_FD_MAX; i++)
    sbx__close_fd(&command->fd[i]);
}

/* ---- text that has no name --------------------------------------------------------------------
 */

/* A pipe that holds `text` and then ends: opened once more by its name, as /dev/stdin, it does not
 * give the text a second time. False where the system does not make it that large. */
static bool put_pipe(int *out, sbx_slice text) {
  int fd[2];
  bool held = false;
  if (text.len > MAX_PIPE || sbx_os_pipe(fd) != 0)
    return false;
#ifdef F_SETPIPE_SZ
  if (text.len > 0)
    fcntl(fd[1], F_SETPIPE_SZ, (int)text.len);
#endif
  fcntl(fd[1], F_SETFL, O_NONBLOCK);
  held = text.len == 0 || write(fd[1], text.ptr, text.len) == (ssize_t)text.len;
  close(fd[1]);
  if (held)
    *out = fd[0];
  else
    close(fd[0]);
  return held;
}

/* ---- argument list -------------------------------------------------------------------------- */

static void add_string(sbx_buf *buf, uint32_t *count, sbx_slice text) {
  sbx_buf_append_slice(buf, text);
  sbx_buf_append_char(buf, '\0');
  (*count)++;
}

static void add_arg(sbx_buf *buf, sbx_guard_spec *head, const char *text) {
  add_string(buf, &head->argc, sbx_slice_str(text));
}

/* The program that reads a command line. SBX_EINVAL when it was named and is not there. */
static int find_shell(const char **out, char name[PATH_MAX], const sbx_session *session,
                      sbx_slice wanted, sbx_err *err) {
  const char *bash = session->bash;
  if (wanted.len == 0)
    *out = bash != NULL ? bash : "/bin/sh";
  else if (sbx_slice_eq_str(wanted, "sh"))
    *out = "/bin/sh";
  else if (sbx_slice_eq_str(wanted, "bash"))
    *out = bash;
  else if (wanted.len < PATH_MAX)
    *out = memcpy(name, wanted.ptr, wanted.len);
  else
    *out = NULL;
  if (*out == NULL || access(*out, X_OK) == 0)
    return *out != NULL ? SBX_OK
                        : sbx_err_set(err, SBX_EINVAL,
                                      "there is no such shell on this machine; install it, or take "
                                      "shell: \"sh\"");
  sbx_err_set(err, SBX_EINVAL, "cannot run the shell ");
  sbx_err_append_remote(err, wanted);
  sbx_err_append(err, ": %s; take shell: \"sh\", or the path of one that is there",
                 sbx_err_system(errno));
  return SBX_EINVAL;
}

static int add_shell(sbx_buf *buf, sbx_guard_spec *head, sbx__command *command,
                     const sbx_session *session, const sbx_exec_spec *spec, sbx_err *err) {
  char name[PATH_MAX] = "";
  const char *shell = NULL;
  int rc = find_shell(&shell, name, session, spec->shell, err);
  if (rc != SBX_OK)
    return rc;
  add_arg(buf, head, shell);
  add_arg(buf, head, "-c");
  if (spec->text.len <= MAX_ARGUMENT) {
    if (spec->text.len > 0 && (spec->text.ptr[0] == '-' || spec->text.ptr[0] == '+'))
      add_arg(buf, head, "--"); /* it is no option */
    add_string(buf, &head->argc, spec->text);
    return SBX_OK;
  }
  add_arg(buf, head, SCRIPT_LOADER);
  return sbx__local_memory_file(&command->fd[SBX_GUARD_FD_SCRIPT], session->config,
                                sbx_slice_str(SCRIPT_PREFIX), spec->text, err);
}

/* Makes the main file. False where that cannot be. */
static bool put_main(sbx__command *command, const sbx_local_root *root, const char *end,
                     sbx_slice text) {
  int dir = command->fd[SBX_GUARD_FD_CWD];
  int fd = sbx__temp_create(dir, end, 0600, command->main_name);
  bool done = fd >= 0 && sbx_local_root_give(root, fd) == 0 && sbx__local_write_all(fd, text) == 0;
  if (fd >= 0)
    close(fd);
  if (done)
    command->main_dir = fcntl(dir, F_DUPFD_CLOEXEC, 0);
  if (fd >= 0 && command->main_dir < 0)
    unlinkat(dir, command->main_name, 0);
  return command->main_dir >= 0;
}

/* Code for which no file could be made: on stdin, or when that is wanted for something else, as an
 * argument. */
static int add_code_without_file(sbx_buf *buf, sbx_guard_spec *head, sbx__command *command,
                                 const sbx_session *session, const sbx_exec_spec *spec,
                                 sbx_err *err) {
  if (spec->stdin_bytes.len == 0 && !spec->open_stdin) {
    add_arg(buf, head, "-");
    if (put_pipe(&command->fd[SBX_GUARD_FD_STDIN], spec->text))
      return SBX_OK;
    return sbx__local_memory_file(&command->fd[SBX_GUARD_FD_STDIN], session->config, spec->text,
                                  sbx_slice_of(NULL, 0), err);
  }
  if (spec->text.len > MAX_ARGUMENT)
    return sbx_err_set(err, SBX_ETOOBIG,
                       "code of more than %d bytes cannot be run together with stdin in a "
                       "directory where no file can be made; give `cwd` another one",
                       MAX_ARGUMENT);
  if (spec->language == SBX_LANG_PYTHON) {
    add_arg(buf, head, "-c");
  } else {
    /* After -e, code that begins with a '-' would be an option. */
    sbx_buf_append_str(buf, "--eval=");
  }
  add_string(buf, &head->argc, spec->text);
  return SBX_OK;
}

static int add_code(sbx_buf *buf, sbx_guard_spec *head, sbx__command *command,
                    const sbx_session *session, const sbx_exec_spec *spec, sbx_err *err) {
  const sbx_config *config = session->config;
  bool python = spec->language == SBX_LANG_PYTHON;
  add_arg(buf, head, python ? "python3" : config->node_path);
  if (python)
    add_arg(buf, head, "-u"); /* else a limit loses what was printed, and streams their order */
  for (size_t i = 0; !python && i < config->node_arg_count; i++)
    add_arg(buf, head, config->node_args[i]);
  if (!put_main(command, &session->workspace->root, python ? ".py" : ".js", spec->text))
    return add_code_without_file(buf, head, command, session, spec, err);
  add_arg(buf, head, command->main_name);
  return SBX_OK;
}

static int add_argv(sbx_buf *buf, sbx_guard_spec *head, sbx__command *command,
                    const sbx_session *session, const sbx_exec_spec *spec, sbx_err *err) {
  switch (spec->kind) {
  case SBX_EXEC_SHELL:
    return add_shell(buf, head, command, session, spec, err);
  case SBX_EXEC_CODE:
    return add_code(buf, head, command, session, spec, err);
  case SBX_EXEC_ARGV:
    break;
  }
  for (size_t i = 0; i < spec->argc; i++)
    add_string(buf, &head->argc, spec->argv[i]);
  return SBX_OK;
}

/* ---- environment ---------------------------------------------------------------------------- */

typedef struct variable {
  sbx_slice name;
  sbx_slice value;
  size_t rank; /* of two with one name the higher one counts */
} variable;

static int by_name(const void *a, const void *b) {
  const variable *x = a, *y = b;
  size_t common = x->name.len < y->name.len ? x->name.len : y->name.len;
  int order = memcmp(x->name.ptr, y->name.ptr, common);
  if (order == 0)
    order = (x->name.len > y->name.len) - (x->name.len < y->name.len);
  return order != 0 ? order : (x->rank > y->rank) - (x->rank < y->rank);
}

static void add_variable(sbx_buf *buf, sbx_guard_spec *head, const variable *v) {
  sbx_buf_append_slice(buf, v->name);
  sbx_buf_append_char(buf, '=');
  add_string(buf, &head->envc, v->value);
}

static void add_items(variable *list, size_t *count, char *const *items, size_t item_count) {
  for (size_t i = 0; i < item_count; i++) {
    sbx_slice item = sbx_slice_str(items[i]);
    size_t len = sbx_slice_find(item, '=');
    list[*count] = (variable){sbx_slice_of(item.ptr, len), sbx_slice_skip(item, len + 1), *count};
    ++*count;
  }
}

/* HOME, this machine's variables, what leads to the sandbox's way out, `env` of the sandbox, `env`
 * of the call; the later ones count. */
static int add_env(sbx_buf *buf, sbx_guard_spec *head, const sbx_session *session,
                   const sbx_exec_spec *spec) {
  const sbx__env *base = &session->config->env, *proxies = &session->proxies;
  size_t count = 0, given = session->config->env_given;
  variable *list = sbx_calloc(2 + base->count + proxies->count + spec->env_count, sizeof *list);
  if (list == NULL)
    return SBX_ENOMEM;
  const char *home = session->config->isolation.wanted ? SBX_GUARD_HOME : session->workspace->path;
  list[count++] = (variable){sbx_slice_str("HOME"), sbx_slice_str(home), 0};
  add_items(list, &count, base->items, given);
  add_items(list, &count, proxies->items, proxies->count);
  if (base->count > given)
    add_items(list, &count, base->items + given, base->count - given);
  if (spec->tty.columns > 0) {
    list[count] = (variable){sbx_slice_str("TERM"), sbx_slice_str("xterm-256color"), count};
    count++;
  }
  for (size_t i = 0; i < spec->env_count; i++, count++)
    list[count] = (variable){spec->env[i].name, spec->env[i].value, count};
  qsort(list, count, sizeof *list, by_name);
  for (size_t i = 0; i < count; i++) {
    if (i + 1 == count || !sbx_slice_eq(list[i].name, list[i + 1].name))
      add_variable(buf, head, &list[i]);
  }
  sbx_free(list);
  return SBX_OK;
}

/* Into an isolated sandbox no directory may go: a path inside does, and ours is kept for the main
 * file only. What becomes of that path meanwhile is the sandbox's own business. */
static int add_inner_cwd(sbx_buf *buf, sbx_guard_spec *head, sbx__command *command,
                         const sbx_session *session, sbx_err *err) {
  const sbx_local_root *root = &session->workspace->root;
  char link[64], path[SBX__LOCAL_PATH_LIMIT];
  int *fd = &command->fd[SBX_GUARD_FD_CWD];
  snprintf(link, sizeof link, "/proc/self/fd/%d", *fd);
  ssize_t n = readlink(link, path, sizeof path - 1);
  path[n > 0 ? n : 0] = '\0';
  const char *below = n > 0 ? sbx__local_below(root, path) : NULL;
  if (below == NULL)
    return sbx__local_sys_fail(err, "find the working directory", n < 0 ? errno : ENOENT);
  sbx_buf_append_str(buf, SBX_GUARD_WORKSPACE "/");
  add_string(buf, &head->cwd, sbx_slice_str(below));
  sbx__close_fd(fd);
  return SBX_OK;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int add_stdin(sbx__command *command, const sbx_session *session, const sbx_exec_spec *spec,
                     sbx_err *err) {
  int *fd = &command->fd[SBX_GUARD_FD_STDIN];
  if (*fd >= 0)
    return SBX_OK;
  if (spec->stdin_bytes.len > 0)
    return sbx__local_memory_file(fd, session->config, spec->stdin_bytes, sbx_slice_of(NULL, 0),
                                  err);
  *fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  return *fd >= 0 ? SBX_OK : sbx__local_sys_fail(err, "open /dev/null", errno);
}

static int add_cwd(sbx__command *command, const sbx_session *session, const sbx_exec_spec *spec,
                   sbx_err *err) {
  int *fd = &command->fd[SBX_GUARD_FD_CWD];
  const sbx_local_root *root = &session->workspace->root;
  if (spec->cwd.len > 0)
    return sbx_local_fs_open_dir(root, spec->cwd, fd, err);
  *fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
  return *fd >= 0 ? SBX_OK : sbx__local_sys_fail(err, "open the workspace", errno);
}

int sbx__command_make(sbx__command *command, const sbx_session *session, const sbx_exec_spec *spec,
                      sbx_err *err) {
  sbx_guard_spec head = {SBX_GUARD_MAGIC, 0, 0, 0, 0};
  sbx_buf buf;
  sbx_buf_init(&buf, MAX_SPEC);
  int rc = add_cwd(command, session, spec, err);
  if (rc == SBX_OK)
    rc = add_argv(&buf, &head, command, session, spec, err);
  if (rc != SBX_OK)
    goto done;
  rc = add_env(&buf, &head, session, spec);
  if (rc != SBX_OK) {
    sbx_err_set(err, rc, NULL);
    goto done;
  }
  if (command->main_dir >= 0)
    add_string(&buf, &head.extra, sbx_slice_str(command->main_name));
  if (session->config->isolation.wanted)
    rc = add_inner_cwd(&buf, &head, command, session, err);
  if (rc != SBX_OK)
    goto done;
  if (buf.error != SBX_OK) {
    rc = sbx_err_set(err, buf.error,
                     buf.error == SBX_ETOOBIG
                         ? "the argument list and the environment of the command are too large; "
                           "pass long text through stdin or a file"
                         : NULL);
    goto done;
  }
  rc = add_stdin(command, session, spec, err);
  if (rc == SBX_OK)
    rc = sbx__local_memory_file(&command->fd[SBX_GUARD_FD_SPEC], session->config,
                                sbx_slice_of((const char *)&head, sizeof head), sbx_buf_slice(&buf),
                                err);
done:
  sbx_buf_deinit(&buf);
  return rc;
}
