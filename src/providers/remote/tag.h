/* tag.h - deletes a sandbox, also one whose create was not answered.
 *
 * Every create carries a random tag. When its answer is missing, the service is asked for the
 * sandbox with that tag, and a second time when there is none: what a create had begun may come up
 * late. */
#ifndef SBX_REMOTE_TAG_H
#define SBX_REMOTE_TAG_H

#include "core/json.h"
#include "providers/remote/steps.h"

enum { SBX_REMOTE_TAG_LEN = 32 };

/* Makes the tag of a session, unless it has one already. SBX_EPROVIDER: no random numbers. */
int sbx_remote_tag_make(char tag[SBX_REMOTE_TAG_LEN + 1], sbx_err *err);
/* Whether `tags`, an object of strings, has it as its member `name`. */
bool sbx_remote_tag_is_in(const sbx_json *tags, const char *name, const char *tag);

/* A provider's part. */
typedef struct sbx_remote_tag_verbs {
  uint64_t look_again_ms; /* before the second search */
  /* Asks for what has the session's tag. */
  void (*find)(sbx_steps *steps, sbx_steps_reply on_reply);
  /* Reads the answer. SBX_OK: *id is the sandbox's, to be freed, or NULL: there is none.
   * SBX_ENOTREADY: it is to be asked for once more, at once, in another way. */
  int (*found)(sbx_session *session, const sbx_http *reply, char **id, sbx_err *err);
  void (*remove)(sbx_steps *steps, const char *id, sbx_steps_reply on_reply);
  /* SBX_OK: it is deleted; SBX_ENOTFOUND: there is none, which is as good. */
  int (*removed)(const sbx_http *reply, sbx_err *err);
  /* Nothing is left of it. */
  void (*gone)(sbx_session *session);
} sbx_remote_tag_verbs;

/* Deletes the sandbox `id`, or when that is NULL the one with the session's tag; nothing with
 * `made` false. Success means that nothing is left that would have to be paid for. */
sbx_op *sbx_remote_tag_remove(sbx_session *session, sbx_loop *loop,
                              const sbx_remote_tag_verbs *verbs, const char *id, bool made,
                              sbx_op_done done, void *arg);

#endif
