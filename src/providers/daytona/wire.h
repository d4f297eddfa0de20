/* wire.h - requests to Daytona's API and to a sandbox's toolbox, and what their refusals mean. */
#ifndef SBX_DAYTONA_WIRE_H
#define SBX_DAYTONA_WIRE_H

#include "providers/daytona/session.h"
#include "providers/remote/exchange.h"

/* Room for a URL; longer ones fail with SBX_ETOOBIG. */
enum { SBX__DAYTONA_URL_MAX = 16 * 1024 };

/* The path as it is sent: relative ones begin at the working directory, "~" and "~/x" at the home
 * of the sandbox's user; while that is not known they stay as they are. See
 * sbx__daytona_need_home(). */
int sbx__daytona_absolute(sbx_buf *out, const sbx_session *session, sbx_slice path);

/* A GET that asks for something. */
extern const sbx_http_request sbx__daytona_question;

/* Each sends one request, which is given without URL and headers. The whole operation has a
 * deadline, so the request has none; and an answer may be as long as a Sandbox object, unless it
 * says something else. */
/* {baseURL}{path} */
void sbx__daytona_to_api(sbx_steps *steps, const char *path, const sbx_http_request *request,
                         sbx_steps_reply on_reply);
/* {baseURL}/sandbox/{id}{rest}, without a body; it may be repeated. */
void sbx__daytona_about(sbx_steps *steps, const char *method, const char *id, const char *rest,
                        sbx_steps_reply on_reply);
/* {toolbox}{path}, "path=" and the file's absolute path in its query when `file` is not empty. */
void sbx__daytona_to_tool(sbx_steps *steps, const char *path, sbx_slice file,
                          const sbx_http_request *request, sbx_steps_reply on_reply);
/* An upload, which may be repeated: the parts of a form. */
void sbx__daytona_upload(sbx_steps *steps, const char *path, sbx_slice file,
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
