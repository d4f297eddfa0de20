/* sweep.cc - sbx_sweep() as a Promise.
 *
 * Invariant: settled once and freed in the same breath; in a dying environment only freed. */
#include "binding/sweep.h"

#include "binding/env.h"
#include "binding/values.h"

#include <memory>
#include <new>

namespace sbx {

namespace {

struct Sweep {
  napi_env env;
  AddonData *addon;
  napi_deferred deferred;
};

napi_value MakeIds(napi_env env, const char *const *ids, size_t count) {
  napi_value array = nullptr;
  napi_create_array_with_length(env, count, &array);
  for (size_t i = 0; array != nullptr && i < count; i++) {
    napi_value id = MakeText(env, ids[i]);
    if (id == nullptr || napi_set_element(env, array, static_cast<uint32_t>(i), id) != napi_ok)
      return nullptr;
  }
  return array;
}

void OnSwept(void *arg, const sbx_err *err, const char *const *ids, size_t count) {
  std::unique_ptr<Sweep> sweep(static_cast<Sweep *>(arg));
  if (sweep->addon->IsDying())
    return;
  Napi::Env env(sweep->env);
  Napi::HandleScope scope(env);
  napi_value value = err == nullptr ? MakeIds(env, ids, count) : nullptr;
  napi_value reason = err != nullptr ? MakeError(env, *err) : nullptr;
  if (value == nullptr && reason == nullptr)
    reason = TakeException(env);
  if (value != nullptr)
    napi_resolve_deferred(env, sweep->deferred, value);
  else if (reason != nullptr)
    napi_reject_deferred(env, sweep->deferred, reason);
}

} // namespace

Napi::Value BeginSweep(const Napi::CallbackInfo &info) {
  Napi::Env env = info.Env();
  Text provider, options;
  if (!provider.Read(env, info[0], "provider") || !options.Read(env, info[1], "options"))
    return Napi::Value();
  if (provider.HasNul()) {
    ThrowType(env, "provider", "a string without U+0000");
    return Napi::Value();
  }
  auto *addon = env.GetInstanceData<AddonData>();
  napi_value promise = nullptr;
  auto *sweep = new (std::nothrow) Sweep{env, addon, nullptr};
  if (sweep == nullptr || napi_create_promise(env, &sweep->deferred, &promise) != napi_ok) {
    delete sweep;
    if (!env.IsExceptionPending())
      napi_throw_range_error(env, nullptr, "cloudsandbox: out of memory");
    return Napi::Value();
  }
  Napi::Value result(env, promise);
  sbx_err err = {};
  sbx_loop *loop = addon->Loop(env, &err);
  if (loop == nullptr ||
      sbx_sweep(loop, provider.CString(), options.Slice(), OnSwept, sweep, &err) != SBX_OK)
    OnSwept(sweep, &err, nullptr, 0);
  return result;
}

} // namespace sbx
