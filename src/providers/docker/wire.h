/* wire.h - one request to the engine, and what its refusals mean. */
#ifndef SBX_DOCKER_WIRE_H
#define SBX_DOCKER_WIRE_H

#include "providers/docker/session.h"
#include "providers/remote/exchange.h"

enum { SBX__DOCKER_URL_MAX = 16 * 1024 };

/* {base}/v1.{minor}{path} */
int sbx__docker_url(sbx_buf *out, const sbx_config *config, const char *path);
/* {base}/v1.{minor}/containers/{id}{rest} */
int sbx__docker_container_url(sbx_buf *out, const sbx_config *config, const char *id,
                              const char *rest);
/* Sends one request; `url` is used up, with the error that it may have; `json` (may be NULL) is
 * taken. The whole operation has a deadline, so the request has none. */
void sbx__docker_send(sbx_steps *steps, const char *method, sbx_buf *url, sbx_buf *json,
                      bool repeatable, sbx_steps_reply on_reply);

/* The engine in general, and where a container is used: that it is not there is SBX_ELOST. */
extern const sbx_remote_service sbx__docker_engine;
extern const sbx_remote_service sbx__docker_container;

/* As sbx_remote_exchange_check(); an engine that cannot be reached is told in words. */
int sbx__docker_check(sbx_err *err, const sbx_config *config, const sbx_remote_service *service,
                      const sbx_http *reply, const char *verb);
int sbx__docker_json(sbx_json_doc **doc, const sbx_config *config,
                     const sbx_remote_service *service, const sbx_http *reply, const char *verb,
                     sbx_err *err);

#endif
