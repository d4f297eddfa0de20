/* json.h - strict JSON: accessors that check type and range, and a builder.
 *
 * Case-sensitive; numbers are integers only where that is asked for and fits; a duplicate member, a
 * nesting deeper than 64 or trailing text is an error. Text may hold U+0000: strings are decoded by
 * our own decoder, so cJSON's NUL-terminated strings never cut them.  */
#ifndef SBX_JSON_H
#define SBX_JSON_H

#include "core/buf.h"

/* A parsed document; owns all values and strings that come out of it. */
typedef struct sbx_json_doc sbx_json_doc;
/* One value inside a document; borrowed from it. */
typedef struct sbx_json sbx_json;

/* A value costs about a hundred bytes, whatever it takes in the text: so their number is limited,
 * and not the length of the text alone. */
enum { SBX_JSON_VALUES_DEFAULT = 4096 };

/* Parses exactly one JSON text. Errors: SBX_EPROTO (with the offset; also for more than
 * SBX_JSON_VALUES_DEFAULT values), SBX_ENOMEM. */
int sbx_json_parse(sbx_json_doc **out, sbx_slice text, sbx_err *err);
/* The same with another limit. */
int sbx_json_parse_max(sbx_json_doc **out, sbx_slice text, size_t max_values, sbx_err *err);
/* Wipes the strings when `secret`. NULL is fine. */
void sbx_json_free(sbx_json_doc *doc, bool secret);
const sbx_json *sbx_json_root(const sbx_json_doc *doc);

bool sbx_json_is_object(const sbx_json *v);
bool sbx_json_is_array(const sbx_json *v);
bool sbx_json_is_null(const sbx_json *v);
bool sbx_json_is_string(const sbx_json *v);

/* A member of an object; NULL when absent or when `v` is NULL or no object. */
const sbx_json *sbx_json_get(const sbx_json *v, const char *name);

/* Each returns false and leaves `out` alone when `v` is NULL or of another type or out of range. */
bool sbx_json_string(const sbx_json *v, sbx_slice *out);
bool sbx_json_bool(const sbx_json *v, bool *out);
bool sbx_json_int(const sbx_json *v, int64_t min, int64_t max, int64_t *out);
/* Integer written as a number or as decimal text, as proto3 JSON writes 64-bit numbers. */
bool sbx_json_int_or_text(const sbx_json *v, int64_t min, int64_t max, int64_t *out);
bool sbx_json_number(const sbx_json *v, double *out);

/* Iteration over arrays and objects: start with NULL; NULL at the end. `name` may be NULL. */
const sbx_json *sbx_json_next(const sbx_json *parent, const sbx_json *previous, sbx_slice *name);
size_t sbx_json_count(const sbx_json *v);

/* Builder: writes JSON text into a buffer, sticky error in the buffer. The caller keeps begin and
 * end balanced; commas are set by the builder. */
typedef struct sbx_json_out {
  sbx_buf *buf;
  bool need_comma;
} sbx_json_out;

void sbx_json_out_init(sbx_json_out *out, sbx_buf *buf);
void sbx_json_begin_object(sbx_json_out *out);
void sbx_json_end_object(sbx_json_out *out);
void sbx_json_begin_array(sbx_json_out *out);
void sbx_json_end_array(sbx_json_out *out);
void sbx_json_put_name(sbx_json_out *out, sbx_slice name);
/* Invalid UTF-8 becomes U+FFFD. */
void sbx_json_put_string(sbx_json_out *out, sbx_slice value);
/* The same with a text that is escaped already. */
void sbx_json_put_escaped(sbx_json_out *out, sbx_slice text);
void sbx_json_put_int(sbx_json_out *out, int64_t value);
void sbx_json_put_bool(sbx_json_out *out, bool value);
void sbx_json_put_null(sbx_json_out *out);
/* A copy of a parsed value. False, and null in its place, for a number that is no integer of 53
 * bits. */
bool sbx_json_put_value(sbx_json_out *out, const sbx_json *v);
/* A member that is a string. */
void sbx_json_put_text(sbx_json_out *out, const char *name, sbx_slice value);
/* Appends `text` as it stands between the quotes of a string, for strings that are made of several
 * texts. */
void sbx_json_escape(sbx_buf *out, sbx_slice text);

#endif
