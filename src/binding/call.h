/* call.h - one Promise in flight. */
#ifndef SBX_BINDING_CALL_H
#define SBX_BINDING_CALL_H

#include "sbx.h"

#include <napi.h>

namespace sbx {

class AddonData;
class Sandbox;

/* Lives from the method that made it until its callback has come. Keeps its Sandbox object alive
 * meanwhile. */
class Call {
public:
  Call(const Call &) = delete;
  Call &operator=(const Call &) = delete;

  /* NULL with an exception pending on failure. `on_output` may be empty. */
  static Call *New(Napi::Env env, Sandbox *owner, uint64_t id, Napi::Value on_output);

  /* Takes what the core's function returned and gives the Promise. When `status` is not SBX_OK the
   * Promise is rejected and the call is freed. */
  Napi::Value Started(int status, const sbx_err &err);

  /* For the core's functions that take `sbx_call **out`. */
  sbx_call **Handle() {
    return &handle_;
  }
  uint64_t Id() const {
    return id_;
  }
  Call *Next() const {
    return next_;
  }
  bool HasOutput() const {
    return on_output_ != nullptr;
  }
  void Cancel();

  /* Callbacks for the core; `arg` is the Call. */
  static void OnDone(void *arg, const sbx_err *err);
  static void OnExec(void *arg, const sbx_err *err, const sbx_exec_result *result);
  static void OnRead(void *arg, const sbx_err *err, const sbx_slice *bytes);
  static void OnList(void *arg, const sbx_err *err, const sbx_entry *entries, size_t count);
  static void OnStat(void *arg, const sbx_err *err, const sbx_stat *info);
  static void OnPart(void *arg, const sbx_err *err, const sbx_part *part);
  static void OnDir(void *arg, const sbx_err *err, const sbx_stat *entries, size_t count);
  static void OnRemove(void *arg, const sbx_err *err, bool existed);
  static void OnOutput(void *arg, sbx_stream stream, sbx_slice bytes);

private:
  Call(napi_env env, AddonData *addon, Sandbox *owner, uint64_t id);
  ~Call();

  template <typename Make> void Settle(const sbx_err *err, Make make);

  napi_env env_;
  AddonData *addon_;
  Sandbox *owner_;
  uint64_t id_;
  napi_deferred deferred_ = nullptr;
  napi_value promise_ = nullptr; /* valid inside the method that made the call */
  napi_ref on_output_ = nullptr;
  sbx_call *handle_ = nullptr;
  Call *next_ = nullptr;
  Call *prev_ = nullptr;
};

} // namespace sbx

#endif
