/* call.cc - from the core's callbacks to a settled Promise.
 *
 * The core calls back from the loop's ready list only, where a callback scope is open and any call
 * into the core is allowed.
 *
 * Invariant: each Call is settled once and freed in the same breath. In a dying environment it is
 * only freed: its Promise stays pending, like all others of a thread that was terminated. */
#include "binding/call.h"

#include "binding/env.h"
#include "binding/sandbox.h"
#include "binding/values.h"

extern "C" {
#include "core/alloc.h"
#include "core/err.h"
}

#include <cstring>
#include <new>

namespace sbx {

namespace {

class HandleScope {
public:
  explicit HandleScope(napi_env env) : env_(env) {
    napi_open_handle_scope(env, &scope_);
  }
  ~HandleScope() {
    if (scope_ != nullptr)
      napi_close_handle_scope(env_, scope_);
  }

private:
  napi_env env_;
  napi_handle_scope scope_ = nullptr;
};

} // namespace

Call::Call(napi_env env, AddonData *addon, Sandbox *owner, uint64_t id)
    : env_(env), addon_(addon), owner_(owner), id_(id) {
  next_ = owner->calls_;
  if (next_ != nullptr)
    next_->prev_ = this;
  owner->calls_ = this;
  owner->Ref();
}

Call::~Call() {
  if (on_output_ != nullptr)
    napi_delete_reference(env_, on_output_);
  if (prev_ != nullptr)
    prev_->next_ = next_;
  else
    owner_->calls_ = next_;
  if (next_ != nullptr)
    next_->prev_ = prev_;
  if (!addon_->IsDying())
    owner_->Unref();
}

Call *Call::New(Napi::Env env, Sandbox *owner, uint64_t id, Napi::Value on_output) {
  auto *addon = env.GetInstanceData<AddonData>();
  auto *call = new (std::nothrow) Call(env, addon, owner, id);
  if (call != nullptr &&
      (on_output.IsEmpty() ||
       napi_create_reference(env, on_output, 1, &call->on_output_) == napi_ok) &&
      napi_create_promise(env, &call->deferred_, &call->promise_) == napi_ok)
    return call;
  delete call;
  if (!env.IsExceptionPending())
    napi_throw_range_error(env, nullptr, "cloudsandbox: out of memory");
  return nullptr;
}

Napi::Value Call::Started(int status, const sbx_err &err) {
  Napi::Value promise(env_, promise_);
  if (status != SBX_OK)
    OnDone(this, &err);
  return promise;
}

void Call::Cancel() {
  if (handle_ != nullptr)
    sbx_call_cancel(handle_);
}

template <typename Make> void Call::Settle(const sbx_err *err, Make make) {
  if (addon_->IsDying()) {
    delete this;
    return;
  }
  napi_env env = env_;
  napi_deferred deferred = deferred_;
  HandleScope scope(env);
  napi_value value = err == nullptr ? make(env) : nullptr;
  napi_value reason = err != nullptr ? MakeError(env, *err) : nullptr;
  if (value == nullptr && reason == nullptr)
    reason = TakeException(env);
  /* Freed first: settling may run JavaScript, by a getter named `then`. */
  delete this;
  if (value != nullptr)
    napi_resolve_deferred(env, deferred, value);
  else if (reason != nullptr)
    napi_reject_deferred(env, deferred, reason);
}

void Call::OnDone(void *arg, const sbx_err *err) {
  static_cast<Call *>(arg)->Settle(err, [](napi_env env) { return MakeUndefined(env); });
}

void Call::OnExec(void *arg, const sbx_err *err, const sbx_exec_result *result) {
  static_cast<Call *>(arg)->Settle(err,
                                   [result](napi_env env) { return MakeExecResult(env, *result); });
}

void Call::OnRead(void *arg, const sbx_err *err, const sbx_slice *bytes) {
  auto *call = static_cast<Call *>(arg);
  sbx_call *handle = call->handle_;
  call->Settle(err, [bytes, handle](napi_env env) {
    return bytes != nullptr ? TakeBytes(env, handle, *bytes) : MakeNull(env);
  });
}

void Call::OnList(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count) {
  static_cast<Call *>(arg)->Settle(
      err, [entries, count](napi_env env) { return MakeEntries(env, entries, count); });
}

void Call::OnStat(void *arg, const sbx_err *err, const sbx_stat *info) {
  static_cast<Call *>(arg)->Settle(err, [info](napi_env env) {
    return info != nullptr ? MakeStats(env, info, 1) : MakeNull(env);
  });
}

void Call::OnPart(void *arg, const sbx_err *err, const sbx_part *part) {
  auto *call = static_cast<Call *>(arg);
  sbx_call *handle = call->handle_;
  call->Settle(err, [part, handle](napi_env env) {
    return part != nullptr ? MakePart(env, handle, *part) : MakeNull(env);
  });
}

void Call::OnDir(void *arg, const sbx_err *err, const sbx_stat *entries, size_t count) {
  static_cast<Call *>(arg)->Settle(
      err, [entries, count](napi_env env) { return MakeStats(env, entries, count); });
}

void Call::OnRemove(void *arg, const sbx_err *err, bool existed) {
  static_cast<Call *>(arg)->Settle(err,
                                   [existed](napi_env env) { return MakeBoolean(env, existed); });
}

void Call::OnOutput(void *arg, sbx_stream stream, sbx_slice bytes) {
  auto *call = static_cast<Call *>(arg);
  if (call->addon_->IsDying())
    return;
  napi_env env = call->env_;
  HandleScope scope(env);
  napi_value function = nullptr;
  napi_value args[2] = {nullptr, MakeBytes(env, bytes)};
  if (args[1] != nullptr && napi_get_reference_value(env, call->on_output_, &function) == napi_ok &&
      napi_create_uint32(env, stream == SBX_STDERR ? 1 : 0, &args[0]) == napi_ok &&
      napi_call_function(env, MakeUndefined(env), function, 2, args, nullptr) == napi_ok)
    return;
  /* What was thrown here has no caller: it is an uncaught exception, as in any event listener. */
  napi_value exception = TakeException(env);
  if (exception != nullptr)
    napi_fatal_exception(env, exception);
}

} // namespace sbx
