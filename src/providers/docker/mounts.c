/* mounts.c - which of the host's files a container may be given.
 *
 * Invariant: what could give a command the host, or the user's credentials, is refused as it is
 * written, whatever the rights inside. Links are not looked at: the host may be another machine. */
#include "providers/docker/mounts.h"

#include "core/err.h"

/* With all that is below them. */
static const char *const forbidden[] = {"/etc",     "/proc",           "/sys",
                                        "/dev",     "/boot",           "/run",
                                        "/var/run", "/var/lib/docker", "/var/lib/containers"};
/* The homes themselves, which hold credentials; what is below them may be given. */
static const char *const homes[] = {"/home", "/Users", "/var/home"};
/* Parts of a path below which credentials are. */
static const char *const secret[] = {
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".netrc", ".git-credentials", ".password-store"};

bool sbx__docker_is_plain_path(sbx_slice path) {
  size_t part = 0; /* length of the one that ends */
  bool dots = true;
  if (path.len < 2 || path.ptr[0] != '/')
    return false;
  for (size_t i = 1; i <= path.len; i++) {
    char c = '/';
    if (i < path.len)
      c = path.ptr[i];
    if (c == '/') {
      if (part == 0 || (dots && part <= 2))
        return false;
      part = 0;
      dots = true;
      continue;
    }
    if ((unsigned char)c < 0x20 || c == 0x7f || c == ':')
      return false;
    dots = dots && c == '.';
    part++;
  }
  return true;
}

/* Whether `path` is `folder`, or below it. */
static bool is_in(sbx_slice path, sbx_slice folder) {
  return sbx_slice_starts_with(path, folder) &&
         (path.len == folder.len || (path.len > folder.len && path.ptr[folder.len] == '/'));
}

static bool has_secret_part(sbx_slice path) {
  while (path.len > 0) {
    path = sbx_slice_skip(path, 1);
    sbx_slice part = sbx_slice_of(path.ptr, sbx_slice_find(path, '/'));
    for (size_t i = 0; i < sizeof secret / sizeof *secret; i++) {
      if (sbx_slice_eq_str(part, secret[i]))
        return true;
    }
    path = sbx_slice_skip(path, part.len);
  }
  return false;
}

/* "/home" and "/home/user" */
static bool is_home(sbx_slice path) {
  for (size_t i = 0; i < sizeof homes / sizeof *homes; i++) {
    sbx_slice all = sbx_slice_str(homes[i]);
    if (is_in(path, all) &&
        (path.len == all.len ||
         sbx_slice_find(sbx_slice_skip(path, all.len + 1), '/') == path.len - all.len - 1))
      return true;
  }
  return sbx_slice_eq_str(path, "/root");
}

/* NULL: it may be given. */
static const char *why_not(sbx_slice path, const char *socket) {
  if (!sbx__docker_is_plain_path(path))
    return "is no plain absolute path";
  for (size_t i = 0; i < sizeof forbidden / sizeof *forbidden; i++) {
    sbx_slice folder = sbx_slice_str(forbidden[i]);
    if (is_in(path, folder) || is_in(folder, path))
      return "would give commands the host's system";
  }
  if (socket != NULL && is_in(sbx_slice_str(socket), path))
    return "holds the engine's socket, which gives commands the host";
  if (is_home(path))
    return "is a home, which holds credentials; mount a folder in it";
  if (has_secret_part(path))
    return "holds credentials";
  return NULL;
}

static int refuse(sbx_err *err, const char *what, sbx_slice path, const char *why) {
  sbx_err_set(err, SBX_EINVAL, "mounts: the %s ", what);
  sbx_err_append_remote(err, path);
  sbx_err_append(err, " %s", why);
  return SBX_EINVAL;
}

static int read_mount(sbx_json_out *out, const sbx_json *mount, const char *dir, const char *socket,
                      bool *has_dir, sbx_err *err) {
  sbx_slice source = {NULL, 0}, target = {NULL, 0}, name;
  bool read_only = true;
  for (const sbx_json *v = sbx_json_next(mount, NULL, &name); v != NULL;
       v = sbx_json_next(mount, v, &name)) {
    bool known = (sbx_slice_eq_str(name, "source") && sbx_json_string(v, &source)) ||
                 (sbx_slice_eq_str(name, "target") && sbx_json_string(v, &target)) ||
                 (sbx_slice_eq_str(name, "readOnly") && sbx_json_bool(v, &read_only));
    if (!known)
      return sbx_err_set(err, SBX_EINVAL,
                         "mounts: each has the strings source and target, perhaps the boolean "
                         "readOnly, and nothing else");
  }
  const char *why = why_not(source, socket);
  if (why != NULL)
    return refuse(err, "source", source, why);
  if (!sbx__docker_is_plain_path(target) || is_in(target, sbx_slice_str("/proc")) ||
      is_in(target, sbx_slice_str("/sys")) || is_in(target, sbx_slice_str("/dev")) ||
      sbx_slice_eq_str(target, "/tmp"))
    return refuse(err, "target", target, "is no place for it");
  *has_dir = *has_dir || sbx_slice_eq_str(target, dir);
  sbx_json_begin_object(out);
  sbx_json_put_name(out, sbx_slice_str("Type"));
  sbx_json_put_string(out, sbx_slice_str("bind"));
  sbx_json_put_name(out, sbx_slice_str("Source"));
  sbx_json_put_string(out, source);
  sbx_json_put_name(out, sbx_slice_str("Target"));
  sbx_json_put_string(out, target);
  sbx_json_put_name(out, sbx_slice_str("ReadOnly"));
  sbx_json_put_bool(out, read_only);
  sbx_json_end_object(out);
  return SBX_OK;
}

int sbx__docker_put_mounts(sbx_json_out *out, const sbx_json *mounts, const char *dir,
                           const char *socket, bool *has_dir, sbx_err *err) {
  int rc = SBX_OK;
  *has_dir = false;
  sbx_json_begin_array(out);
  if (mounts != NULL && !sbx_json_is_array(mounts))
    rc = sbx_err_set(err, SBX_EINVAL, "mounts must be an array of {source, target, readOnly}");
  for (const sbx_json *v = sbx_json_next(mounts, NULL, NULL); v != NULL && rc == SBX_OK;
       v = sbx_json_next(mounts, v, NULL))
    rc =
        sbx_json_is_object(v)
            ? read_mount(out, v, dir, socket, has_dir, err)
            : sbx_err_set(err, SBX_EINVAL, "mounts must be an array of {source, target, readOnly}");
  sbx_json_end_array(out);
  return rc;
}
