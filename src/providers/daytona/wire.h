/* wire.h - requests to Daytona's API and to a sandbox's toolbox, and what their refusals mean. */
#ifndef SBX_DAYTONA_WIRE_H
#define SBX_DAYTONA_WIRE_H

#include "providers/daytona/session.h"
#include "providers/remote/exchange.h"

/* Room for a URL; longer ones fail with SBX_ETOOBIG. */
enum { SBX__DAYTONA_URL_MAX = 16 * 1024 };

/* {baseURL}/sandbox/{id}{rest} */
int sbx__daytona_api_url(sbx_buf *out, const sbx_config *config, const char *id, const char *rest);
/* {toolbox}{path}, "?path=" and the file's absolute path after it when `file` is not empty. */
int sbx__daytona_tool_url(sbx_buf *out, const sbx_session *session, const char *path,
                          sbx_slice file);
/* The path as it is sent: relative ones begin at the working directory, "~" and "~/x" at the home
 * of the sandbox's user; while that is not known they stay as they are. See
 * sbx__daytona_need_home(). */
int sbx__daytona_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path);

/* Sends one request; `url` is used up, with the error that it may have; `json` (may be NULL) is
 * taken. The whole operation has a deadline, so the request has none. */
void sbx__daytona_send(sbx_steps *steps, const char *method, sbx_buf *url, sbx_buf *json,
                       bool repeatable, sbx_steps_reply on_reply);
/* A request about one sandbox, without a body, that may be repeated; see sbx__daytona_api_url(). */
void sbx__daytona_to_api(sbx_steps *steps, const char *method, const char *id, const char *rest,
                         sbx_steps_reply on_reply);
/* Writes a file, which may be done twice: the parts of a form to a route of the toolbox; `file` as
 * in sbx__daytona_tool_url(). */
void sbx__daytona_upload(sbx_steps *steps, const char *route, sbx_slice file,
                         const sbx_http_part *parts, size_t count, sbx_steps_reply on_reply);

/* The API. Its SBX_ENOTFOUND is its own word; somebody else's 404 is SBX_EPROTO. */
extern const sbx_remote_service sbx__daytona_api;
/* The toolbox, where a refusal may mean that the sandbox has stopped or is gone: such ones are
 * SBX_ECONFLICT, which leads to a look at it. */
extern const sbx_remote_service sbx__daytona_toolbox;

/* The same where a file is named, whose absence is SBX_ENOTFOUND; another 404 is SBX_EPROTO. */
extern const sbx_remote_service sbx__daytona_files;

/* Reads the path that an answer of the toolbox names as its "dir", into *out. SBX_EPROTO,
 * SBX_ENOMEM, or what the refusal means. */
int sbx__daytona_take_dir(char **out, const sbx_http *reply, const char *verb, sbx_err *err);
/* Calls `then` when the home is known that `path` may begin at: at once, or after a request, which
 * is made once for a session. When it cannot be had, `steps` finishes with the error. */
void sbx__daytona_need_home(sbx_steps *steps, sbx_slice path, sbx_steps_time then);

int sbx__daytona_check_tool(sbx_err *err, const sbx_http *reply, const char *verb);
/* Whether the refusal says that there is no such route. */
bool sbx__daytona_no_route(const sbx_http *reply);

#endif
