/* values.h - JavaScript values to C and back.
 *
 * Every function that reads a value returns false with a JavaScript exception pending when the
 * value has the wrong type or reading it threw. Functions that make a value return NULL when the
 * environment can make none (it is being terminated, or memory ran out). */
#ifndef SBX_BINDING_VALUES_H
#define SBX_BINDING_VALUES_H

#include "sbx.h"

#include <napi.h>

#include <vector>

namespace sbx {

/* The UTF-8 bytes of a string, wiped when freed since they may be a secret. NUL-terminated; U+0000
 * inside is kept. */
class Text {
public:
  Text() = default;
  Text(Text &&other) noexcept;
  Text &operator=(Text &&) = delete;
  ~Text();

  /* `what` names the value in the TypeError. */
  bool Read(Napi::Env env, Napi::Value value, const char *what);
  sbx_slice Slice() const {
    return sbx_slice_of(ptr_, len_);
  }
  const char *CString() const {
    return ptr_ != nullptr ? ptr_ : "";
  }
  bool HasNul() const;

private:
  char *ptr_ = nullptr;
  size_t len_ = 0;
};

/* The arguments of exec(): owns the copies that `Spec()` points to. */
class ExecArgs {
public:
  bool Read(Napi::Env env, Napi::Value value);
  const sbx_exec_spec *Spec() const {
    return &spec_;
  }

private:
  bool ReadTexts(Napi::Env env, Napi::Object object);
  bool ReadNumbers(Napi::Env env, Napi::Object object);
  bool ReadLists(Napi::Env env, Napi::Object object);

  sbx_exec_spec spec_ = {};
  Text text_, cwd_, context_, shell_;
  std::vector<Text> argv_texts_, env_texts_;
  std::vector<sbx_slice> argv_;
  std::vector<sbx_env_var> env_;
};

/* Throws a TypeError "cloudsandbox: <what> must be <expected>" and returns false. */
bool ThrowType(Napi::Env env, const char *what, const char *expected);

/* The bytes of a Uint8Array, borrowed until JavaScript runs again. */
bool ReadBytes(Napi::Env env, Napi::Value value, const char *what, sbx_slice *out);
/* An integer from 0 to 2^53 - 1. */
bool ReadCount(Napi::Env env, Napi::Value value, const char *what, uint64_t *out);
/* Of a terminal, in characters. */
bool ReadSide(Napi::Env env, Napi::Value value, const char *what, uint16_t *out);

/* The plain object that a call rejects with. */
napi_value MakeError(napi_env env, const sbx_err &err);
napi_value MakeExecResult(napi_env env, const sbx_exec_result &result);
napi_value MakeBytes(napi_env env, sbx_slice bytes);
/* The same for what a read has brought; large bytes are taken over, not copied. */
napi_value TakeBytes(napi_env env, sbx_call *call, sbx_slice bytes);
napi_value MakeEntries(napi_env env, const sbx_entry *entries, size_t count);
/* { names, numbers }: all names, each with a NUL at its end, and of each its kind, size, time of
 * change in ms (NaN: unknown) and mode (-1: unknown). */
napi_value MakeStats(napi_env env, const sbx_stat *stats, size_t count);
/* { bytes, size, last, stamp } */
napi_value MakePart(napi_env env, sbx_call *call, const sbx_part &part);
napi_value MakeBoolean(napi_env env, bool value);
napi_value MakeText(napi_env env, const char *text); /* null for NULL */
napi_value MakeNull(napi_env env);
napi_value MakeUndefined(napi_env env);

/* Takes the pending exception away and returns it; NULL when there is none to be had. */
napi_value TakeException(napi_env env);

} // namespace sbx

#endif
