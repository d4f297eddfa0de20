/* registry.c - the table of providers, and what all of them share.
 *
 * Invariant: an option that nobody reads is refused; a misspelt one never passes in silence. */
#include "providers/provider.h"

#include "core/alloc.h"
#include "core/err.h"

#include <string.h>

#ifdef SBX_TEST_PROVIDERS
extern const sbx_provider sbx_line_provider; /* test/providers/line */
#endif

static const sbx_provider *const providers[] = {
    &sbx_local_provider, &sbx_e2b_provider,    &sbx_daytona_provider,   &sbx_docker_provider,
    &sbx_http_provider,  &sbx_vercel_provider, &sbx_agentcore_provider, &sbx_modal_provider,
#ifdef SBX_TEST_PROVIDERS
    &sbx_line_provider,
#endif
};

/* What src/sandbox reads itself. */
static const char *const common_names[] = {
    "defaultTimeoutMs", "startTimeoutMs", "onLost", "shell", "environment", NULL};

const sbx_provider *sbx_provider_find(const char *id) {
  for (size_t i = 0; i < sizeof providers / sizeof providers[0]; i++) {
    if (strcmp(providers[i]->id, id) == 0)
      return providers[i];
  }
  return NULL;
}

static bool is_one_of(sbx_slice name, const char *const *names) {
  for (; *names != NULL; names++) {
    if (sbx_slice_eq_str(name, *names))
      return true;
  }
  return false;
}

static void append_names(sbx_err *err, const char *const *names, const char **separator) {
  for (; *names != NULL; names++) {
    sbx_err_append(err, "%s%s", *separator, *names);
    *separator = ", ";
  }
}

static int check_names(const sbx_json *options, const char *const *names, sbx_err *err) {
  sbx_slice name;
  for (const sbx_json *v = sbx_json_next(options, NULL, &name); v != NULL;
       v = sbx_json_next(options, v, &name)) {
    if (is_one_of(name, common_names) || is_one_of(name, names))
      continue;
    const char *separator = "\"; this provider knows ";
    sbx_err_set(err, SBX_EINVAL, "unknown option \"");
    sbx_err_append_remote(err, name);
    append_names(err, names, &separator);
    append_names(err, common_names, &separator);
    return SBX_EINVAL;
  }
  return SBX_OK;
}

int sbx_provider_configure(sbx_config **out, const sbx_provider *provider, sbx_loop *loop,
                           const sbx_json *options, sbx_err *err) {
  sbx_err ours;
  err = err != NULL ? err : &ours;
  sbx_err_clear(err);
  int rc = check_names(options, provider->options, err);
  if (rc != SBX_OK)
    return rc;
  sbx_config *config = sbx_calloc(1, provider->config_size);
  if (config == NULL)
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  rc = provider->configure(config, loop, options, err);
  if (rc == SBX_OK)
    *out = config;
  else
    provider->config_free(config);
  return rc;
}

uint32_t sbx_provider_caps(const sbx_provider *provider, const sbx_config *config) {
  uint32_t lacking = provider->lacks != NULL ? provider->lacks(config) : 0;
  return provider->caps & ~lacking;
}

int sbx_listing_add(sbx_listing *listing, char *path, uint64_t size, sbx_err *err) {
  sbx_entry *entries =
      path != NULL ? sbx_grow(listing->entries, listing->count, sizeof *entries) : NULL;
  if (entries == NULL) {
    sbx_free(path);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  listing->entries = entries;
  entries[listing->count++] = (sbx_entry){path, size};
  return SBX_OK;
}

void sbx_listing_free(sbx_listing *listing) {
  for (size_t i = 0; i < listing->count; i++)
    sbx_free((void *)(uintptr_t)listing->entries[i].path);
  sbx_free(listing->entries);
  *listing = (sbx_listing){NULL, 0};
}

int sbx_stats_add(sbx_stats *stats, const sbx_stat *stat, sbx_slice name, sbx_err *err) {
  char *copy = name.ptr != NULL ? sbx_strndup(name.ptr, name.len) : NULL;
  sbx_stat *items =
      copy != NULL || name.ptr == NULL ? sbx_grow(stats->items, stats->count, sizeof *items) : NULL;
  if (items == NULL) {
    sbx_free(copy);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  stats->items = items;
  items[stats->count] = *stat;
  items[stats->count++].name = copy;
  return SBX_OK;
}

void sbx_stats_free(sbx_stats *stats) {
  for (size_t i = 0; i < stats->count; i++)
    sbx_free((void *)(uintptr_t)stats->items[i].name);
  sbx_free(stats->items);
  sbx_buf_deinit(&stats->part);
  *stats = (sbx_stats){0};
}

const char *sbx_path_verb_text(sbx_path_verb verb) {
  switch (verb) {
  case SBX_PATH_STAT:
    return "look at";
  case SBX_PATH_LIST:
    return "list";
  case SBX_PATH_REMOVE:
    return "remove";
  case SBX_PATH_MOVE:
    return "move";
  case SBX_PATH_PART:
    return "read a part of";
  case SBX_PATH_JOIN:
  case SBX_PATH_TAKE:
    return "write";
  case SBX_PATH_MAKE:
    break;
  }
  return "make the directory";
}

bool sbx_provider_is_env_name(sbx_slice name) {
  for (size_t i = 0; i < name.len; i++) {
    char c = name.ptr[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9'))
      return false;
  }
  return name.len > 0;
}
