/* sweep.c - what other processes have left at a provider.
 *
 * Invariant: what the provider's op has found lives until it has been reported, also after a
 * failure. */
#include "core/alloc.h"
#include "core/err.h"
#include "providers/provider.h"

typedef struct sweep_op {
  sbx_op op;
  const sbx_provider *provider;
  sbx_config *config;
  sbx_op *child;
  sbx_listing found;
  sbx_sweep_cb cb;
  void *arg;
} sweep_op;

enum { LIMIT_MS = 120 * 1000 };

static void abort_sweep(sbx_op *op, int reason) {
  sweep_op *s = (sweep_op *)(void *)op;
  sbx_op_drop(&s->child, reason);
  sbx_op_finish_code(op, reason);
}

static void destroy_sweep(sbx_op *op) {
  sweep_op *s = (sweep_op *)(void *)op;
  s->provider->config_free(s->config);
  sbx_listing_free(&s->found);
  sbx_free(s);
}

static const sbx_op_class sweep_class = {"sweep", abort_sweep, destroy_sweep};

static void on_swept(sbx_op *child, void *arg) {
  sweep_op *s = arg;
  s->child = NULL;
  if (child->err.code != SBX_OK && s->provider->hide != NULL)
    s->provider->hide(s->config, NULL, &child->err);
  sbx_op_finish(&s->op, child->err.code != SBX_OK ? &child->err : NULL);
}

static void report(sbx_op *op, void *arg) {
  sweep_op *s = (sweep_op *)(void *)op;
  const char **ids = sbx_calloc(s->found.count + 1, sizeof *ids);
  sbx_err nomem;
  (void)arg;
  if (ids == NULL)
    sbx_err_set(&nomem, SBX_ENOMEM, NULL);
  for (size_t i = 0; ids != NULL && i < s->found.count; i++)
    ids[i] = s->found.entries[i].path;
  const sbx_err *err = op->err.code != SBX_OK ? &op->err : NULL;
  s->cb(s->arg, ids != NULL ? err : &nomem, ids, ids != NULL ? s->found.count : 0);
  sbx_free((void *)ids);
}

static int configure(sbx_config **config, const sbx_provider *provider, sbx_loop *loop,
                     sbx_slice options_json, sbx_err *err) {
  sbx_json_doc *doc = NULL;
  sbx_err why;
  int rc = sbx_json_parse(&doc, options_json, &why);
  if (rc != SBX_OK)
    return sbx_err_set(err, rc == SBX_EPROTO ? SBX_EINVAL : rc, "the options are not JSON: %s",
                       why.message);
  rc = sbx_provider_configure(config, provider, loop, sbx_json_root(doc), err);
  sbx_json_free(doc, true);
  return rc;
}

int sbx_sweep(sbx_loop *loop, const char *id, sbx_slice options_json, sbx_sweep_cb cb, void *arg,
              sbx_err *err) {
  const sbx_provider *provider = sbx_provider_find(id);
  sbx_config *config = NULL;
  if (provider == NULL || provider->sweep == NULL)
    return sbx_err_set(err, SBX_EUNSUPPORTED,
                       provider == NULL ? "no such provider"
                                        : "sandboxes of this provider end by themselves");
  int rc = configure(&config, provider, loop, options_json, err);
  if (rc != SBX_OK)
    return rc;
  sweep_op *s = sbx_calloc(1, sizeof *s);
  if (s == NULL) {
    provider->config_free(config);
    return sbx_err_set(err, SBX_ENOMEM, NULL);
  }
  s->provider = provider;
  s->config = config;
  s->cb = cb;
  s->arg = arg;
  sbx_op_init(&s->op, &sweep_class, loop, report, NULL);
  s->child = provider->sweep(config, &s->found, on_swept, s);
  if (s->child == NULL)
    sbx_op_finish_code(&s->op, SBX_ENOMEM);
  else
    sbx_op_set_deadline(&s->op, LIMIT_MS);
  return SBX_OK;
}
