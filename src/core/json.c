/* json.c - a strict JSON reader that builds a cJSON tree, accessors over it, and a writer.
 *
 * The text is read here and not by cJSON_Parse(), which cuts strings at U+0000, rounds integers
 * beyond 2^53, takes what is not JSON, and writes to a process-wide variable that the threads of a
 * process would share. cJSON holds the tree: its nodes refer to names, strings and the texts of
 * numbers that live in the document's chunks, each with its length in front.
 *
 * Invariant: a node is hung into the tree as soon as it is made, so freeing the document frees
 * everything at any point of the parse, and recursion is never deeper than MAX_DEPTH. */
#include "core/json.h"

#include "core/alloc.h"
#include "core/enc.h"
#include "core/err.h"
#include "core/os.h"

#include <cjson/cJSON.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAX_DEPTH 64
#define CHUNK_BYTES 4096

typedef struct chunk {
  struct chunk *next;
  size_t len;
  size_t cap;
  char bytes[];
} chunk;

struct sbx_json_doc {
  cJSON *root;
  chunk *chunks;
};

/* ---- texts ---- */

/* A text of at most `max` bytes that set_text_len() completes; NULL on out of memory. */
static char *new_text(sbx_json_doc *doc, size_t max) {
  size_t need;
  if (!sbx_size_add(&need, max, sizeof(size_t) + 1))
    return NULL;
  chunk *last = doc->chunks;
  if (!last || last->cap - last->len < need) {
    size_t cap = need > CHUNK_BYTES ? need : CHUNK_BYTES;
    size_t size;
    last = sbx_size_add(&size, cap, sizeof *last) ? sbx_malloc(size) : NULL;
    if (!last)
      return NULL;
    *last = (chunk){doc->chunks, 0, cap};
    doc->chunks = last;
  }
  return last->bytes + last->len + sizeof(size_t);
}

/* `text` is the newest text of the document. */
static void set_text_len(sbx_json_doc *doc, char *text, size_t len) {
  memcpy(text - sizeof len, &len, sizeof len);
  text[len] = '\0';
  doc->chunks->len += sizeof len + len + 1;
}

static sbx_slice text_slice(const char *text) {
  size_t len;
  memcpy(&len, text - sizeof len, sizeof len);
  return sbx_slice_of(text, len);
}

/* ---- reading ---- */

#define EACH_BYTE(c) (UINT64_C(0x0101010101010101) * (c))

/* Whether no byte of the word is a control character, a quote or a backslash: for each of the three
 * the subtraction borrows into the top bit of the first such byte. */
static bool is_plain_word(uint64_t word) {
  uint64_t quote = word ^ EACH_BYTE('"');
  uint64_t backslash = word ^ EACH_BYTE('\\');
  uint64_t found = ((word - EACH_BYTE(0x20)) & ~word) | ((quote - EACH_BYTE(1)) & ~quote) |
                   ((backslash - EACH_BYTE(1)) & ~backslash);
  return (found & EACH_BYTE(0x80)) == 0;
}

/* How many bytes at the start of `s` stand for themselves inside quotes. */
static size_t plain_length(sbx_slice s) {
  size_t n = 0;
  uint64_t word;
  for (; s.len - n >= sizeof word; n += sizeof word) {
    memcpy(&word, s.ptr + n, sizeof word);
    if (!is_plain_word(word))
      break;
  }
  while (n < s.len && (unsigned char)s.ptr[n] >= 0x20 && s.ptr[n] != '"' && s.ptr[n] != '\\')
    n++;
  return n;
}

typedef struct reader {
  sbx_slice text;
  size_t at;
  sbx_json_doc *doc;
  size_t values_left;
  sbx_err *err;
  const char **names; /* room to sort an object's names */
  size_t names_cap;
} reader;

static int refuse(reader *r, size_t at, const char *what) {
  return sbx_err_set(r->err, SBX_EPROTO, "invalid JSON at byte %zu: %s", at, what);
}

static int no_memory(reader *r) {
  return sbx_err_set(r->err, SBX_ENOMEM, NULL);
}

/* The next byte, or '\0' at the end of the text; no token has a NUL. */
static char peek(const reader *r) {
  if (r->at == r->text.len)
    return '\0';
  return r->text.ptr[r->at];
}

static char peek_token(reader *r) {
  char c = peek(r);
  while (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
    r->at++;
    c = peek(r);
  }
  return c;
}

/* Takes the next token, which is one byte. */
static bool take_token(reader *r, char c) {
  bool found = peek_token(r) == c;
  r->at += found;
  return found;
}

/* The four digits behind "\u" at the start of `s`, or -1. */
static long escaped_unit(sbx_slice s) {
  if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u')
    return -1;
  long unit = 0;
  for (size_t i = 2; i < 6; i++) {
    int digit = sbx_hex_value(s.ptr[i]);
    if (digit < 0)
      return -1;
    unit = unit << 4 | digit;
  }
  return unit;
}

static size_t write_utf8(char *to, unsigned long c) {
  if (c < 0x80) {
    to[0] = (char)c;
    return 1;
  }
  size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
  for (size_t i = len - 1; i > 0; i--, c >>= 6)
    to[i] = (char)(0x80 | (c & 0x3F));
  to[0] = (char)(leads[len] | c);
  return len;
}

/* Decodes the escape at the start of `s` to `*to`, which it moves on. Returns how long the escape
 * is, 0 when it is none. */
static size_t read_escape(sbx_slice s, char **to) {
  static const char letters[] = "\"\\/bfnrt";
  static const char bytes[] = "\"\\/\b\f\n\r\t";
  const char *letter = s.len > 1 && s.ptr[1] ? strchr(letters, s.ptr[1]) : NULL;
  if (letter) {
    *(*to)++ = bytes[letter - letters];
    return 2;
  }
  long unit = escaped_unit(s);
  if (unit < 0 || (unit >= 0xDC00 && unit <= 0xDFFF))
    return 0;
  size_t len = 6;
  if (unit >= 0xD800 && unit <= 0xDBFF) {
    long low = escaped_unit(sbx_slice_skip(s, 6));
    if (low < 0xDC00 || low > 0xDFFF)
      return 0;
    unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
    len = 12;
  }
  *to += write_utf8(*to, (unsigned long)unit);
  return len;
}

/* Length of what stands between the quotes, the first of which is passed; text.len at no end. */
static size_t string_length(sbx_slice s) {
  size_t at = 0;
  while (at < s.len && s.ptr[at] != '"')
    at += s.ptr[at] == '\\' ? 2 : 1;
  return at < s.len ? at : s.len;
}

static int read_string(reader *r, const char **out) {
  r->at++;
  sbx_slice s = sbx_slice_skip(r->text, r->at);
  s.len = string_length(s);
  if (r->at + s.len == r->text.len)
    return refuse(r, r->at - 1, "a string without an end");
  char *text = new_text(r->doc, s.len);
  if (!text)
    return no_memory(r);
  char *to = text;
  while (s.len) {
    size_t len = plain_length(s);
    if (len) {
      if (!sbx_utf8_valid(sbx_slice_of(s.ptr, len)))
        return refuse(r, r->at, "invalid UTF-8 in the text that begins here");
      memcpy(to, s.ptr, len);
      to += len;
    } else if (s.ptr[0] != '\\') {
      return refuse(r, r->at, "a control character in a string");
    } else if ((len = read_escape(s, &to)) == 0) {
      return refuse(r, r->at, "an invalid escape");
    }
    s = sbx_slice_skip(s, len);
    r->at += len;
  }
  r->at++;
  set_text_len(r->doc, text, (size_t)(to - text));
  *out = text;
  return SBX_OK;
}

static size_t digits_length(sbx_slice s) {
  size_t n = 0;
  while (n < s.len && sbx_is_digit(s.ptr[n]))
    n++;
  return n;
}

/* Length of the integer at the start of `s`, 0 when there is none. */
static size_t integer_length(sbx_slice s) {
  size_t sign = s.len && s.ptr[0] == '-';
  sbx_slice rest = sbx_slice_skip(s, sign);
  size_t digits = rest.len && rest.ptr[0] == '0' ? 1 : digits_length(rest);
  return digits ? sign + digits : 0;
}

static size_t number_length(sbx_slice s) {
  size_t len = integer_length(s);
  if (len && len < s.len && s.ptr[len] == '.') {
    size_t digits = digits_length(sbx_slice_skip(s, len + 1));
    len = digits ? len + 1 + digits : 0;
  }
  if (len && len < s.len && (s.ptr[len] == 'e' || s.ptr[len] == 'E')) {
    size_t at = len + 1;
    if (at < s.len && (s.ptr[at] == '+' || s.ptr[at] == '-'))
      at++;
    size_t digits = digits_length(sbx_slice_skip(s, at));
    len = digits ? at + digits : 0;
  }
  return len;
}

/* Hangs `item` (NULL: out of memory) into the tree. */
static int add(reader *r, cJSON *parent, const char *name, cJSON *item) {
  if (!item)
    return no_memory(r);
  if (!parent)
    r->doc->root = item;
  else if (name)
    cJSON_AddItemToObjectCS(parent, name, item);
  else
    cJSON_AddItemToArray(parent, item);
  return SBX_OK;
}

static int read_number(reader *r, cJSON *parent, const char *name) {
  sbx_slice s = sbx_slice_skip(r->text, r->at);
  s.len = number_length(s);
  if (s.len == 0)
    return refuse(r, r->at, "no value");
  char *text = new_text(r->doc, s.len);
  if (!text)
    return no_memory(r);
  memcpy(text, s.ptr, s.len);
  set_text_len(r->doc, text, s.len);
  r->at += s.len;
  cJSON *item = cJSON_CreateStringReference(text);
  if (item)
    item->type = cJSON_Number | cJSON_IsReference;
  return add(r, parent, name, item);
}

static int read_literal(reader *r, cJSON *parent, const char *name) {
  sbx_slice s = sbx_slice_skip(r->text, r->at);
  sbx_slice literal = sbx_slice_str(s.ptr[0] == 't' ? "true" : s.ptr[0] == 'f' ? "false" : "null");
  if (!sbx_slice_starts_with(s, literal))
    return refuse(r, r->at, "no value");
  r->at += literal.len;
  if (s.ptr[0] == 'n')
    return add(r, parent, name, cJSON_CreateNull());
  return add(r, parent, name, cJSON_CreateBool(s.ptr[0] == 't'));
}

static int compare_names(const void *a, const void *b) {
  sbx_slice x = text_slice(*(const char *const *)a);
  sbx_slice y = text_slice(*(const char *const *)b);
  if (x.len != y.len)
    return x.len < y.len ? -1 : 1;
  return memcmp(x.ptr, y.ptr, x.len);
}

static int check_names(reader *r, const cJSON *object) {
  size_t count = sbx_json_count((const sbx_json *)object);
  if (count < 2)
    return SBX_OK;
  if (count > r->names_cap) {
    size_t size;
    const char **names =
        sbx_size_mul(&size, count, 2 * sizeof *names) ? sbx_realloc((void *)r->names, size) : NULL;
    if (!names)
      return no_memory(r);
    r->names = names;
    r->names_cap = 2 * count;
  }
  size_t n = 0;
  for (const cJSON *member = object->child; member; member = member->next)
    r->names[n++] = member->string;
  qsort((void *)r->names, n, sizeof *r->names, compare_names);
  for (size_t i = 1; i < n; i++) {
    if (compare_names(&r->names[i - 1], &r->names[i]) == 0)
      return refuse(r, r->at, "two members of one name in the object that ends here");
  }
  return SBX_OK;
}

static int read_value(reader *r, cJSON *parent, const char *name, unsigned depth);

static int read_member(reader *r, cJSON *object, unsigned depth) {
  const char *name = NULL;
  if (peek_token(r) != '"')
    return refuse(r, r->at, "no member name");
  int rc = read_string(r, &name);
  if (rc != SBX_OK)
    return rc;
  if (!take_token(r, ':'))
    return refuse(r, r->at, "no ':' behind a member name");
  return read_value(r, object, name, depth);
}

/* Reads an array or object from its bracket on. `depth` is that of its items. */
static int read_items(reader *r, cJSON *parent, const char *name, unsigned depth) {
  bool is_object = peek(r) == '{';
  char end = is_object ? '}' : ']';
  if (depth > MAX_DEPTH)
    return refuse(r, r->at, "nested too deeply");
  r->at++;
  cJSON *items = is_object ? cJSON_CreateObject() : cJSON_CreateArray();
  int rc = add(r, parent, name, items);
  if (rc != SBX_OK || take_token(r, end))
    return rc;
  do {
    rc = is_object ? read_member(r, items, depth) : read_value(r, items, NULL, depth);
    if (rc != SBX_OK)
      return rc;
  } while (take_token(r, ','));
  if (!take_token(r, end))
    return refuse(r, r->at, is_object ? "no ',' or '}'" : "no ',' or ']'");
  return is_object ? check_names(r, items) : SBX_OK;
}

static int read_value(reader *r, cJSON *parent, const char *name, unsigned depth) {
  const char *text = NULL;
  char first = peek_token(r);
  if (r->values_left-- == 0)
    return refuse(r, r->at, "too many values");
  switch (first) {
  case '{':
  case '[':
    return read_items(r, parent, name, depth + 1);
  case '"': {
    int rc = read_string(r, &text);
    return rc == SBX_OK ? add(r, parent, name, cJSON_CreateStringReference(text)) : rc;
  }
  case 't':
  case 'f':
  case 'n':
    return read_literal(r, parent, name);
  default:
    return read_number(r, parent, name);
  }
}

int sbx_json_parse(sbx_json_doc **out, sbx_slice text, sbx_err *err) {
  return sbx_json_parse_max(out, text, SBX_JSON_VALUES_DEFAULT, err);
}

int sbx_json_parse_max(sbx_json_doc **out, sbx_slice text, size_t max_values, sbx_err *err) {
  reader r = {.text = text, .values_left = max_values, .err = err};
  r.doc = sbx_calloc(1, sizeof *r.doc);
  int rc = r.doc ? read_value(&r, NULL, NULL, 0) : no_memory(&r);
  if (rc == SBX_OK) {
    peek_token(&r);
    if (r.at < text.len)
      rc = refuse(&r, r.at, "text behind the value");
  }
  sbx_free((void *)r.names);
  if (rc == SBX_OK)
    *out = r.doc;
  else
    sbx_json_free(r.doc, true);
  return rc;
}

void sbx_json_free(sbx_json_doc *doc, bool secret) {
  if (!doc)
    return;
  cJSON_Delete(doc->root);
  while (doc->chunks) {
    chunk *next = doc->chunks->next;
    /* Bytes behind `len` may hold a string whose parse failed. */
    if (secret)
      sbx_wipe(doc->chunks->bytes, doc->chunks->cap);
    sbx_free(doc->chunks);
    doc->chunks = next;
  }
  sbx_free(doc);
}

/* ---- accessors ---- */

static const cJSON *node(const sbx_json *v) {
  return (const cJSON *)v;
}

const sbx_json *sbx_json_root(const sbx_json_doc *doc) {
  return (const sbx_json *)doc->root;
}

bool sbx_json_is_object(const sbx_json *v) {
  return cJSON_IsObject(node(v));
}

bool sbx_json_is_array(const sbx_json *v) {
  return cJSON_IsArray(node(v));
}

bool sbx_json_is_null(const sbx_json *v) {
  return cJSON_IsNull(node(v));
}

bool sbx_json_is_string(const sbx_json *v) {
  return cJSON_IsString(node(v));
}

const sbx_json *sbx_json_get(const sbx_json *v, const char *name) {
  if (!sbx_json_is_object(v))
    return NULL;
  const cJSON *member = node(v)->child;
  while (member && !sbx_slice_eq_str(text_slice(member->string), name))
    member = member->next;
  return (const sbx_json *)member;
}

bool sbx_json_string(const sbx_json *v, sbx_slice *out) {
  if (!sbx_json_is_string(v))
    return false;
  *out = text_slice(node(v)->valuestring);
  return true;
}

bool sbx_json_bool(const sbx_json *v, bool *out) {
  if (!cJSON_IsBool(node(v)))
    return false;
  *out = cJSON_IsTrue(node(v));
  return true;
}

static bool read_int(sbx_slice s, int64_t min, int64_t max, int64_t *out) {
  if (s.len == 0 || integer_length(s) != s.len)
    return false;
  bool negative = s.ptr[0] == '-';
  int64_t value = 0; /* counted downwards: INT64_MIN has no positive twin */
  for (size_t i = negative; i < s.len; i++) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_sub_overflow(value, s.ptr[i] - '0', &value))
      return false;
  }
  if (!negative && __builtin_sub_overflow(0, value, &value))
    return false;
  if (value < min || value > max)
    return false;
  *out = value;
  return true;
}

bool sbx_json_int(const sbx_json *v, int64_t min, int64_t max, int64_t *out) {
  return cJSON_IsNumber(node(v)) && read_int(text_slice(node(v)->valuestring), min, max, out);
}

bool sbx_json_int_or_text(const sbx_json *v, int64_t min, int64_t max, int64_t *out) {
  return (cJSON_IsNumber(node(v)) || cJSON_IsString(node(v))) &&
         read_int(text_slice(node(v)->valuestring), min, max, out);
}

bool sbx_json_number(const sbx_json *v, double *out) {
  if (!cJSON_IsNumber(node(v)))
    return false;
  /* The program's locale may have another decimal point. */
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
  if (plain == (locale_t)0)
    return false;
  double value = strtod_l(node(v)->valuestring, NULL, plain);
  freelocale(plain);
  if (!isfinite(value))
    return false;
  *out = value;
  return true;
}

const sbx_json *sbx_json_next(const sbx_json *parent, const sbx_json *previous, sbx_slice *name) {
  if (!sbx_json_is_object(parent) && !sbx_json_is_array(parent))
    return NULL;
  const cJSON *item = previous ? node(previous)->next : node(parent)->child;
  if (item && name)
    *name = item->string ? text_slice(item->string) : sbx_slice_of(NULL, 0);
  return (const sbx_json *)item;
}

size_t sbx_json_count(const sbx_json *v) {
  size_t count = 0;
  for (const sbx_json *item = NULL; (item = sbx_json_next(v, item, NULL)) != NULL;)
    count++;
  return count;
}

/* ---- writing ---- */

void sbx_json_out_init(sbx_json_out *out, sbx_buf *buf) {
  *out = (sbx_json_out){buf, false};
}

static void before_value(sbx_json_out *out) {
  if (out->need_comma)
    sbx_buf_append_char(out->buf, ',');
  out->need_comma = true;
}

static void begin(sbx_json_out *out, char bracket) {
  before_value(out);
  sbx_buf_append_char(out->buf, bracket);
  out->need_comma = false;
}

static void end(sbx_json_out *out, char bracket) {
  sbx_buf_append_char(out->buf, bracket);
  out->need_comma = true;
}

void sbx_json_begin_object(sbx_json_out *out) {
  begin(out, '{');
}

void sbx_json_end_object(sbx_json_out *out) {
  end(out, '}');
}

void sbx_json_begin_array(sbx_json_out *out) {
  begin(out, '[');
}

void sbx_json_end_array(sbx_json_out *out) {
  end(out, ']');
}

static void write_escape(sbx_buf *buf, char c) {
  const char pair[2] = {'\\', c};
  if (c == '"' || c == '\\')
    sbx_buf_append(buf, pair, sizeof pair);
  else if (c == '\n')
    sbx_buf_append(buf, "\\n", 2);
  else
    sbx_buf_appendf(buf, "\\u%04x", (unsigned)c);
}

void sbx_json_escape(sbx_buf *out, sbx_slice text) {
  while (text.len && !out->error) {
    size_t plain = plain_length(text);
    sbx_utf8_append_lossy(out, sbx_slice_of(text.ptr, plain));
    text = sbx_slice_skip(text, plain);
    if (text.len) {
      write_escape(out, text.ptr[0]);
      text = sbx_slice_skip(text, 1);
    }
  }
}

static void write_string(sbx_buf *buf, sbx_slice s) {
  sbx_buf_append_char(buf, '"');
  sbx_json_escape(buf, s);
  sbx_buf_append_char(buf, '"');
}

void sbx_json_put_name(sbx_json_out *out, sbx_slice name) {
  before_value(out);
  write_string(out->buf, name);
  sbx_buf_append_char(out->buf, ':');
  out->need_comma = false;
}

void sbx_json_put_string(sbx_json_out *out, sbx_slice value) {
  before_value(out);
  write_string(out->buf, value);
}

void sbx_json_put_escaped(sbx_json_out *out, sbx_slice text) {
  before_value(out);
  sbx_buf_append_char(out->buf, '"');
  sbx_buf_append_slice(out->buf, text);
  sbx_buf_append_char(out->buf, '"');
}

void sbx_json_put_int(sbx_json_out *out, int64_t value) {
  before_value(out);
  sbx_buf_appendf(out->buf, "%lld", (long long)value);
}

void sbx_json_put_bool(sbx_json_out *out, bool value) {
  before_value(out);
  sbx_buf_append_str(out->buf, value ? "true" : "false");
}

void sbx_json_put_null(sbx_json_out *out) {
  before_value(out);
  sbx_buf_append_str(out->buf, "null");
}

static bool put_items(sbx_json_out *out, const sbx_json *v) {
  bool ok = true, is_object = sbx_json_is_object(v);
  sbx_slice name;
  for (const sbx_json *item = sbx_json_next(v, NULL, &name); item != NULL;
       item = sbx_json_next(v, item, &name)) {
    if (is_object)
      sbx_json_put_name(out, name);
    ok = sbx_json_put_value(out, item) && ok;
  }
  return ok;
}

/* As deep as the parser lets a text be. */
bool sbx_json_put_value(sbx_json_out *out, const sbx_json *v) {
  sbx_slice text;
  bool flag, ok = true, is_object = sbx_json_is_object(v);
  int64_t number, most = INT64_MAX / 1024;
  if (is_object || sbx_json_is_array(v)) {
    begin(out, is_object ? '{' : '[');
    ok = put_items(out, v);
    end(out, is_object ? '}' : ']');
  } else if (sbx_json_string(v, &text)) {
    sbx_json_put_string(out, text);
  } else if (sbx_json_bool(v, &flag)) {
    sbx_json_put_bool(out, flag);
  } else if (sbx_json_int(v, -most, most, &number)) {
    sbx_json_put_int(out, number);
  } else {
    ok = sbx_json_is_null(v);
    sbx_json_put_null(out);
  }
  return ok;
}

void sbx_json_put_text(sbx_json_out *out, const char *name, sbx_slice value) {
  sbx_json_put_name(out, sbx_slice_str(name));
  sbx_json_put_string(out, value);
}
