/* secrets.h - takes credentials out of messages: services repeat what they were sent. */
#ifndef SBX_SECRETS_H
#define SBX_SECRETS_H

#include "core/header.h"

/* Puts "***" in place of `secret` wherever the message has it, or the beginning of it, where a text
 * was cut. A secret that is too short to be told from other words is left. */
void sbx_secret_hide(sbx_err *err, sbx_slice secret);
/* The same for each word of a field's value. */
void sbx_secret_hide_words(sbx_err *err, sbx_slice value);
/* The same for the values of all fields that are credentials, by their names. */
void sbx_secret_hide_fields(sbx_err *err, const sbx_headers *headers);
/* Whether a field of this name is a credential. */
bool sbx_secret_is_field(sbx_slice name);

#endif
