/* addon.cc - what `require("cloudsandbox.node")` gives.
 *
 * Invariant: no state outside the environment's AddonData, so that every worker thread has its own.
 */
#include "binding/env.h"
#include "binding/sandbox.h"
#include "binding/sweep.h"

namespace {

void Abandon(const Napi::CallbackInfo &info) {
  info.Env().GetInstanceData<sbx::AddonData>()->Abandon();
}

void UseDriver(const Napi::CallbackInfo &info) {
  info.Env().GetInstanceData<sbx::AddonData>()->UseDriver();
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  env.SetInstanceData(new sbx::AddonData());
  exports.Set("Sandbox", sbx::Sandbox::Define(env));
  exports.Set("sweep", Napi::Function::New<sbx::BeginSweep>(env, "sweep"));
  exports.Set("version", SBX_VERSION);
  exports.Set("abandon", Napi::Function::New<Abandon>(env, "abandon"));
  exports.Set("useDriver", Napi::Function::New<UseDriver>(env, "useDriver"));
  return exports;
}

} // namespace

NODE_API_MODULE(NODE_GYP_MODULE_NAME, Init)
