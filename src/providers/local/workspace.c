/* workspace.c - the directory of a sandbox: one of our own, or one that the user gave. */
#include "providers/local/local.h"

#include "core/alloc.h"
#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

sbx__workspace *sbx__workspace_ref(sbx__workspace *workspace) {
  workspace->refs++;
  return workspace;
}

void sbx__workspace_unref(sbx__workspace *workspace) {
  if (workspace == NULL || --workspace->refs > 0)
    return;
  sbx__close_fd(&workspace->root.fd);
  sbx__close_fd(&workspace->parent);
  sbx_free(workspace->path);
  sbx_free(workspace->given);
  sbx_free(workspace);
}

int sbx__workspace_fail_gone(const sbx__workspace *workspace, sbx_err *err) {
  return sbx_err_set(err, SBX_ELOST, "the workspace folder %s no longer exists", workspace->path);
}

bool sbx__workspace_is_ours(const sbx__workspace *workspace) {
  return workspace != NULL && workspace->parent >= 0 && !workspace->removed;
}

/* Root's commands are somebody else's, to whom the directory and what is made in it belongs. */
static int give_away(sbx__workspace *w, const sbx_config *config, bool ours, sbx_err *err) {
  struct stat st;
  if (!config->isolation.wanted || geteuid() != 0 || fstat(w->root.fd, &st) != 0)
    return SBX_OK;
  w->root.gives = true;
  sbx__isolated_owner(ours ? NULL : &st, &w->root.uid, &w->root.gid);
  if (ours && sbx_local_root_give(&w->root, w->root.fd) != 0) {
    /* A root that can only be itself. Whether that is the machine's, the helper finds out. */
    w->root.gives = false;
    return errno == EINVAL || errno == EPERM
               ? SBX_OK
               : sbx__local_sys_fail(err, "give the workspace to the user of the commands", errno);
  }
  if (ours || st.st_uid != 0 || (st.st_mode & 07) == 07)
    return SBX_OK;
  return sbx_err_set(
      err, SBX_EISOLATION,
      "commands cannot be isolated in the workspace %s: it belongs to root, and they are not root. "
      "Give it to another user (chown), or leave `workspace` out; for code that you trust there is "
      "isolation: \"none\"",
      w->path);
}

/* Opens the directory at `path`, which has no links in it; the string is the workspace's then. */
static int open_workspace(sbx__workspace **out, const sbx_config *config, char *path, bool ours,
                          sbx_err *err) {
  sbx__workspace *w = sbx_calloc(1, sizeof *w);
  if (w == NULL) {
    sbx_free(path);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  w->refs = 1;
  w->path = path;
  w->parent = -1;
  w->root.fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  int error = errno;
  char *slash = strrchr(path, '/');
  if (w->root.fd >= 0 && ours && slash != NULL) {
    *slash = '\0';
    w->parent = open(slash == path ? "/" : path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    error = errno;
    *slash = '/';
    w->name = slash + 1;
  }
  if (w->root.fd < 0 || (ours && w->parent < 0)) {
    /* What was given is wrong; what is ours has met with something. */
    int code = !ours && error == ENOTDIR ? SBX_EINVAL : SBX_EPROVIDER;
    sbx_err_set(err, code, "cannot open the workspace %s: %s", path, sbx_err_system(error));
    sbx__workspace_unref(w);
    return code;
  }
  sbx_local_root_init(&w->root, w->root.fd, w->path);
  w->root.home = sbx__local_home(config);
  sbx__remover_init(&w->remover, &w->root, w->parent, w->name);
  w->root.given = config->isolation.wanted ? SBX_GUARD_WORKSPACE : NULL;
  w->root.unmarked = config->isolation.wanted;
  int rc = give_away(w, config, ours, err);
  if (rc != SBX_OK)
    sbx__workspace_unref(w);
  else
    *out = w;
  return rc;
}

/* The path without links, as a string of ours. NULL with `err` filled. */
static char *resolve(const char *path, sbx_err *err) {
  char *real = realpath(path, NULL);
  int error = errno;
  char *copy = real != NULL ? sbx_strndup(real, strlen(real)) : NULL;
  if (real == NULL && error != ENOMEM)
    sbx_err_set(err, SBX_EINVAL, "cannot use the directory %s: %s", path, sbx_err_system(error));
  else if (copy == NULL)
    sbx_err_set(err, SBX_ENOMEM, NULL);
  free(real);
  return copy;
}

int sbx__workspace_make(sbx__workspace **out, const sbx_config *config, sbx_err *err) {
  char made[PATH_MAX];
  int n = snprintf(made, sizeof made, "%s/cloudsandbox-XXXXXX", config->temp_dir);
  if (n < 0 || (size_t)n >= sizeof made)
    return sbx_err_set(err, SBX_EINVAL, "the path of the temporary directory is too long");
  if (mkdtemp(made) == NULL) {
    int code = errno == ENOSPC || errno == EDQUOT ? SBX_EQUOTA : SBX_EINVAL;
    return sbx_err_set(err, code, "cannot make a workspace in %s: %s", config->temp_dir,
                       sbx_err_system(errno));
  }
  /* The host's umask may have left nothing. */
  int ignored = chmod(made, S_IRWXU);
  (void)ignored;
  char *path = resolve(made, err);
  int rc = path != NULL ? open_workspace(out, config, path, true, err) : err->code;
  if (rc != SBX_OK)
    rmdir(made);
  return rc;
}

int sbx__workspace_use(sbx__workspace **out, const sbx_config *config, sbx_err *err) {
  char *path = resolve(config->workspace, err);
  if (path == NULL)
    return err->code;
  char *given = sbx_strndup(config->workspace, strlen(config->workspace));
  if (given == NULL) {
    sbx_free(path);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  sbx__workspace *w = NULL;
  int rc = open_workspace(&w, config, path, false, err);
  if (w == NULL) {
    sbx_free(given);
    return rc;
  }
  w->given = given;
  if (!config->isolation.wanted)
    w->root.given = given;
  *out = w;
  return SBX_OK;
}
