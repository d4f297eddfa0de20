/* values.cc - JavaScript values to C and back.
 *
 * Invariant: while a C view of a typed array's memory is held, no JavaScript runs; a getter could
 * detach it. So typed arrays are read last, after every property has been fetched.
 *
 * Values for JavaScript are made with the C functions and not with the C++ wrappers: each of them
 * can fail while a worker thread is being terminated, and then there is nobody to throw to. */
#include "binding/values.h"

extern "C" {
#include "core/alloc.h"
}

#include <cmath>
#include <cstring>
#include <utility>

namespace sbx {

namespace {

/* More items than any command line takes; keeps a wrong length from filling the memory. */
constexpr uint32_t kMaxItems = 1u << 20;
constexpr double kMaxSafeInteger = 9007199254740991.0;
/* Half of what one string of JavaScript can hold. */
constexpr size_t kMaxNames = size_t{1} << 28;
constexpr size_t kTakenFrom = 64 * 1024; /* less is copied faster than it is tracked */

/* `out` is left empty when the property is undefined. */
bool Get(Napi::Env env, Napi::Object object, const char *name, Napi::Value *out) {
  Napi::Value value = object.Get(name);
  if (env.IsExceptionPending())
    return false;
  *out = value.IsUndefined() ? Napi::Value() : value;
  return true;
}

bool GetText(Napi::Env env, Napi::Object object, const char *name, const char *what, Text *out) {
  Napi::Value value;
  if (!Get(env, object, name, &value))
    return false;
  return value.IsEmpty() || out->Read(env, value, what);
}

bool GetFlag(Napi::Env env, Napi::Object object, const char *name, const char *what, bool *out) {
  Napi::Value value;
  if (!Get(env, object, name, &value))
    return false;
  if (value.IsEmpty())
    return true;
  if (!value.IsBoolean())
    return ThrowType(env, what, "a boolean");
  *out = value.As<Napi::Boolean>().Value();
  return true;
}

bool GetTexts(Napi::Env env, Napi::Object object, const char *name, const char *what,
              std::vector<Text> *out) {
  Napi::Value value;
  if (!Get(env, object, name, &value))
    return false;
  if (value.IsEmpty())
    return true;
  if (!value.IsArray())
    return ThrowType(env, what, "an array of strings");
  Napi::Array array = value.As<Napi::Array>();
  uint32_t length = array.Length();
  if (length > kMaxItems)
    return ThrowType(env, what, "an array of at most 1048576 strings");
  for (uint32_t i = 0; i < length; i++) {
    Napi::HandleScope scope(env);
    Napi::Value item = array.Get(i);
    if (env.IsExceptionPending())
      return false;
    Text text;
    if (!text.Read(env, item, what))
      return false;
    out->push_back(std::move(text));
  }
  return true;
}

/* Sets properties of a new object; remembers whether all of it worked. */
class ObjectMaker {
public:
  explicit ObjectMaker(napi_env env) : env_(env) {
    ok_ = napi_create_object(env, &object_) == napi_ok;
  }
  void Set(const char *name, napi_value value) {
    ok_ = ok_ && value != nullptr && napi_set_named_property(env_, object_, name, value) == napi_ok;
  }
  void SetText(const char *name, const char *text) {
    Set(name, MakeText(env_, text));
  }
  void SetNumber(const char *name, double number) {
    napi_value value = nullptr;
    ok_ = ok_ && napi_create_double(env_, number, &value) == napi_ok;
    Set(name, value);
  }
  void SetBool(const char *name, bool flag) {
    napi_value value = nullptr;
    ok_ = ok_ && napi_get_boolean(env_, flag, &value) == napi_ok;
    Set(name, value);
  }
  napi_value Done() const {
    return ok_ ? object_ : nullptr;
  }

private:
  napi_env env_;
  napi_value object_ = nullptr;
  bool ok_;
};

void SetKept(ObjectMaker &result, napi_env env, const char *name, const sbx_kept &kept) {
  if (kept.bytes.len == 0 && kept.dropped == 0)
    return;
  ObjectMaker maker(env);
  maker.Set("bytes", MakeBytes(env, kept.bytes));
  maker.SetNumber("dropped", static_cast<double>(kept.dropped));
  maker.SetNumber("tailAt", static_cast<double>(kept.tail_at));
  result.Set(name, maker.Done());
}

const char *OutcomeName(sbx_outcome outcome) {
  switch (outcome) {
  case SBX_EXITED:
    return "exited";
  case SBX_SIGNALLED:
    return "signalled";
  case SBX_TIMED_OUT:
    return "timedOut";
  case SBX_CANCELLED:
    return "cancelled";
  }
  return nullptr;
}

const char *TerminationName(sbx_termination termination) {
  switch (termination) {
  case SBX_TERM_NONE:
    return "none";
  case SBX_TERM_CONFIRMED:
    return "confirmed";
  case SBX_TERM_REQUESTED:
    return "requested";
  case SBX_TERM_UNKNOWN:
    return "unknown";
  }
  return nullptr;
}

} // namespace

/* ---- from JavaScript ---- */

bool ThrowType(Napi::Env env, const char *what, const char *expected) {
  std::string message = std::string("cloudsandbox: ") + what + " must be " + expected;
  napi_throw_type_error(env, nullptr, message.c_str());
  return false;
}

Text::Text(Text &&other) noexcept
    : ptr_(std::exchange(other.ptr_, nullptr)), len_(std::exchange(other.len_, 0)) {}

Text::~Text() {
  if (ptr_ != nullptr)
    sbx_wipe(ptr_, len_);
  sbx_free(ptr_);
}

bool Text::Read(Napi::Env env, Napi::Value value, const char *what) {
  size_t length = 0;
  if (napi_get_value_string_utf8(env, value, nullptr, 0, &length) != napi_ok)
    return ThrowType(env, what, "a string");
  ptr_ = static_cast<char *>(sbx_malloc(length + 1));
  if (ptr_ == nullptr ||
      napi_get_value_string_utf8(env, value, ptr_, length + 1, &len_) != napi_ok) {
    napi_throw_range_error(env, nullptr, "cloudsandbox: out of memory");
    return false;
  }
  return true;
}

bool Text::HasNul() const {
  return len_ > 0 && memchr(ptr_, '\0', len_) != nullptr;
}

bool ReadBytes(Napi::Env env, Napi::Value value, const char *what, sbx_slice *out) {
  bool is_typed_array = false;
  if (napi_is_typedarray(env, value, &is_typed_array) != napi_ok || !is_typed_array)
    return ThrowType(env, what, "a Uint8Array");
  napi_typedarray_type type = napi_int8_array;
  size_t length = 0;
  void *data = nullptr;
  if (napi_get_typedarray_info(env, value, &type, &length, &data, nullptr, nullptr) != napi_ok ||
      type != napi_uint8_array)
    return ThrowType(env, what, "a Uint8Array");
  *out = sbx_slice_of(static_cast<const char *>(data), data != nullptr ? length : 0);
  return true;
}

bool ReadCount(Napi::Env env, Napi::Value value, const char *what, uint64_t *out) {
  double number = 0;
  if (napi_get_value_double(env, value, &number) != napi_ok || !(number >= 0) ||
      number > kMaxSafeInteger || std::floor(number) != number)
    return ThrowType(env, what, "an integer from 0 to 2^53 - 1");
  *out = static_cast<uint64_t>(number);
  return true;
}

bool ReadSide(Napi::Env env, Napi::Value value, const char *what, uint16_t *out) {
  uint64_t count = 0;
  if (!ReadCount(env, value, what, &count))
    return false;
  if (count > UINT16_MAX)
    return ThrowType(env, what, "at most 65535");
  *out = static_cast<uint16_t>(count);
  return true;
}

bool ExecArgs::ReadTexts(Napi::Env env, Napi::Object object) {
  Text kind, language, truncate;
  if (!GetText(env, object, "kind", "spec.kind", &kind) ||
      !GetText(env, object, "language", "spec.language", &language) ||
      !GetText(env, object, "truncate", "spec.truncate", &truncate) ||
      !GetText(env, object, "text", "spec.text", &text_) ||
      !GetText(env, object, "cwd", "spec.cwd", &cwd_) ||
      !GetText(env, object, "context", "spec.context", &context_) ||
      !GetText(env, object, "shell", "spec.shell", &shell_))
    return false;

  if (strcmp(kind.CString(), "shell") == 0)
    spec_.kind = SBX_EXEC_SHELL;
  else if (strcmp(kind.CString(), "code") == 0)
    spec_.kind = SBX_EXEC_CODE;
  else if (strcmp(kind.CString(), "argv") == 0)
    spec_.kind = SBX_EXEC_ARGV;
  else
    return ThrowType(env, "spec.kind", "'shell', 'code' or 'argv'");

  if (spec_.kind == SBX_EXEC_CODE) {
    if (strcmp(language.CString(), "python") == 0)
      spec_.language = SBX_LANG_PYTHON;
    else if (strcmp(language.CString(), "node") == 0)
      spec_.language = SBX_LANG_NODE;
    else
      return ThrowType(env, "spec.language", "'python' or 'node'");
  }

  if (strcmp(truncate.CString(), "middle") == 0)
    spec_.truncate = SBX_KEEP_HEAD_AND_TAIL;
  else if (strcmp(truncate.CString(), "") != 0 && strcmp(truncate.CString(), "head") != 0)
    return ThrowType(env, "spec.truncate", "'head' or 'middle'");

  spec_.text = text_.Slice();
  spec_.cwd = cwd_.Slice();
  spec_.context = context_.Slice();
  spec_.shell = shell_.Slice();
  return true;
}

bool ExecArgs::ReadNumbers(Napi::Env env, Napi::Object object) {
  Napi::Value timeout, max_output, columns, rows;
  if (!Get(env, object, "timeoutMs", &timeout) ||
      !Get(env, object, "maxOutputBytes", &max_output) ||
      !Get(env, object, "ttyColumns", &columns) || !Get(env, object, "ttyRows", &rows) ||
      !GetFlag(env, object, "mergeStreams", "spec.mergeStreams", &spec_.merge_streams) ||
      !GetFlag(env, object, "endBackground", "spec.endBackground", &spec_.end_background) ||
      !GetFlag(env, object, "openStdin", "spec.openStdin", &spec_.open_stdin))
    return false;

  if (!timeout.IsEmpty()) {
    if (timeout.IsNumber() && std::isinf(timeout.As<Napi::Number>().DoubleValue()) &&
        timeout.As<Napi::Number>().DoubleValue() > 0)
      spec_.timeout_ms = SBX_NO_TIMEOUT;
    else if (!ReadCount(env, timeout, "spec.timeoutMs", &spec_.timeout_ms))
      return false;
  }
  if ((!columns.IsEmpty() && !ReadSide(env, columns, "spec.ttyColumns", &spec_.tty.columns)) ||
      (!rows.IsEmpty() && !ReadSide(env, rows, "spec.ttyRows", &spec_.tty.rows)))
    return false;
  uint64_t bytes = 0;
  if (!max_output.IsEmpty() && !ReadCount(env, max_output, "spec.maxOutputBytes", &bytes))
    return false;
  spec_.max_output_bytes = static_cast<size_t>(bytes);
  return true;
}

bool ExecArgs::ReadLists(Napi::Env env, Napi::Object object) {
  if (!GetTexts(env, object, "argv", "spec.argv", &argv_texts_) ||
      !GetTexts(env, object, "env", "spec.env", &env_texts_))
    return false;
  if (env_texts_.size() % 2 != 0)
    return ThrowType(env, "spec.env", "an array of name, value, name, value, ...");

  for (const Text &text : argv_texts_)
    argv_.push_back(text.Slice());
  for (size_t i = 0; i < env_texts_.size(); i += 2)
    env_.push_back({env_texts_[i].Slice(), env_texts_[i + 1].Slice()});
  spec_.argv = argv_.data();
  spec_.argc = argv_.size();
  spec_.env = env_.data();
  spec_.env_count = env_.size();
  return true;
}

bool ExecArgs::Read(Napi::Env env, Napi::Value value) {
  if (!value.IsObject())
    return ThrowType(env, "spec", "an object");
  Napi::Object object = value.As<Napi::Object>();
  Napi::Value input;
  if (!Get(env, object, "stdin", &input) || !ReadTexts(env, object) || !ReadNumbers(env, object) ||
      !ReadLists(env, object))
    return false;
  return input.IsEmpty() || ReadBytes(env, input, "spec.stdin", &spec_.stdin_bytes);
}

/* ---- to JavaScript ---- */

napi_value MakeUndefined(napi_env env) {
  napi_value value = nullptr;
  napi_get_undefined(env, &value);
  return value;
}

napi_value MakeNull(napi_env env) {
  napi_value value = nullptr;
  napi_get_null(env, &value);
  return value;
}

napi_value MakeText(napi_env env, const char *text) {
  if (text == nullptr)
    return MakeNull(env);
  napi_value value = nullptr;
  napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  return value;
}

napi_value MakeBytes(napi_env env, sbx_slice bytes) {
  napi_value value = nullptr;
  if (napi_create_buffer_copy(env, bytes.len, bytes.ptr, nullptr, &value) != napi_ok)
    return nullptr;
  return value;
}

static void FreeBytes(napi_env, void *bytes, void *) {
  sbx_bytes_free(static_cast<char *>(bytes));
}

napi_value TakeBytes(napi_env env, sbx_call *call, sbx_slice bytes) {
  napi_value value = nullptr;
  if (bytes.len < kTakenFrom)
    return MakeBytes(env, bytes);
  char *taken = sbx_call_take_bytes(call);
  napi_status status =
      napi_create_external_buffer(env, bytes.len, taken, FreeBytes, nullptr, &value);
  if (status == napi_ok)
    return value;
  /* Where pointers of others are refused; after any other failure Node has called FreeBytes(). */
  if (status != napi_no_external_buffers_allowed)
    return nullptr;
  value = MakeBytes(env, bytes);
  sbx_bytes_free(taken);
  return value;
}

napi_value MakePart(napi_env env, sbx_call *call, const sbx_part &part) {
  ObjectMaker maker(env);
  maker.SetText("stamp", part.stamp);
  maker.SetNumber("size", static_cast<double>(part.size));
  maker.SetBool("last", part.last);
  maker.Set("bytes", TakeBytes(env, call, part.bytes));
  return maker.Done();
}

napi_value MakeError(napi_env env, const sbx_err &err) {
  std::string code = std::string("ERR_SANDBOX_") + sbx_err_public_code(err.code);
  ObjectMaker maker(env);
  maker.SetText("name", sbx_err_name(err.code));
  maker.SetText("code", code.c_str());
  maker.SetText("message", err.message);
  maker.SetNumber("status", err.status);
  maker.SetText("provider", err.provider);
  maker.SetBool("retryable", sbx_err_retryable(err.code));
  maker.SetBool("mayHaveRun", err.may_have_run);
  return maker.Done();
}

/* What is as usual is left out: properties are what takes the time of a short command's result. */
napi_value MakeExecResult(napi_env env, const sbx_exec_result &result) {
  ObjectMaker maker(env);
  maker.SetText("outcome", OutcomeName(result.outcome));
  maker.SetNumber("exitCode", result.exit_code);
  maker.SetNumber("durationMs", static_cast<double>(result.duration_ms));
  if (result.signal_name != nullptr)
    maker.SetText("signal", result.signal_name);
  if (result.termination != SBX_TERM_NONE)
    maker.SetText("termination", TerminationName(result.termination));
  if (result.background_killed)
    maker.SetBool("backgroundKilled", true);
  if (result.background_running)
    maker.SetBool("backgroundRunning", true);
  if (result.output_lost)
    maker.SetBool("outputLost", true);
  if (result.oom_killed)
    maker.SetBool("oomKilled", true);
  if (result.output_exceeded)
    maker.SetBool("outputExceeded", true);
  if (result.peak_bytes > 0) {
    maker.SetNumber("cpuMicroseconds", static_cast<double>(result.cpu_us));
    maker.SetNumber("peakBytes", static_cast<double>(result.peak_bytes));
  }
  SetKept(maker, env, "output", result.output);
  SetKept(maker, env, "stdout", result.out);
  SetKept(maker, env, "stderr", result.err);
  if (result.details.len > 0) {
    napi_value details = nullptr;
    napi_create_string_utf8(env, result.details.ptr, result.details.len, &details);
    maker.Set("details", details);
  }
  return maker.Done();
}

/* All names in one string, for an object per file costs the loop ten times as much here as in
 * JavaScript, which can also do a part at a time. */
template <typename NameOf> static napi_value MakeNames(napi_env env, size_t count, NameOf name_of) {
  size_t total = 0;
  for (size_t i = 0; i < count; i++)
    total += strlen(name_of(i)) + 1;
  napi_value names = nullptr;
  char *text = total <= kMaxNames ? static_cast<char *>(sbx_malloc(total + 1)) : nullptr;
  if (text == nullptr) {
    napi_throw_range_error(env, nullptr, "cloudsandbox: no memory for the names of so many files");
    return nullptr;
  }
  char *at = text;
  for (size_t i = 0; i < count; i++) {
    size_t size = strlen(name_of(i)) + 1;
    memcpy(at, name_of(i), size);
    at += size;
  }
  napi_create_string_utf8(env, text, total, &names);
  sbx_free(text);
  return names;
}

template <typename NumberOf>
static napi_value MakeNumbers(napi_env env, size_t count, NumberOf number_of) {
  void *data = nullptr;
  napi_value buffer = nullptr, array = nullptr;
  if (napi_create_arraybuffer(env, count * sizeof(double), &data, &buffer) != napi_ok)
    return nullptr;
  auto *numbers = static_cast<double *>(data);
  for (size_t i = 0; i < count; i++)
    numbers[i] = number_of(i);
  napi_create_typedarray(env, napi_float64_array, count, buffer, 0, &array);
  return array;
}

napi_value MakeEntries(napi_env env, const sbx_entry *entries, size_t count) {
  ObjectMaker maker(env);
  maker.Set("names", MakeNames(env, count, [entries](size_t i) { return entries[i].path; }));
  maker.Set("sizes", MakeNumbers(env, count, [entries](size_t i) {
              return static_cast<double>(entries[i].size);
            }));
  return maker.Done();
}

static double NumberOf(const sbx_stat &stat, size_t which) {
  switch (which) {
  case 0:
    return stat.kind;
  case 1:
    return static_cast<double>(stat.size);
  case 2:
    return stat.modified_ms != SBX_TIME_UNKNOWN ? static_cast<double>(stat.modified_ms) : NAN;
  default:
    return stat.mode;
  }
}

napi_value MakeStats(napi_env env, const sbx_stat *stats, size_t count) {
  ObjectMaker maker(env);
  maker.Set("names", MakeNames(env, count, [stats](size_t i) {
              return stats[i].name != nullptr ? stats[i].name : "";
            }));
  maker.Set("numbers", MakeNumbers(env, count * 4,
                                   [stats](size_t i) { return NumberOf(stats[i / 4], i % 4); }));
  return maker.Done();
}

napi_value MakeBoolean(napi_env env, bool value) {
  napi_value made = nullptr;
  napi_get_boolean(env, value, &made);
  return made;
}

napi_value TakeException(napi_env env) {
  bool pending = false;
  napi_value exception = nullptr;
  if (napi_is_exception_pending(env, &pending) != napi_ok || !pending ||
      napi_get_and_clear_last_exception(env, &exception) != napi_ok)
    return nullptr;
  return exception;
}

} // namespace sbx
