/* sandbox.h - the JavaScript class over sbx_sandbox. */
#ifndef SBX_BINDING_SANDBOX_H
#define SBX_BINDING_SANDBOX_H

#include "binding/call.h"
#include "sbx.h"

#include <napi.h>

namespace sbx {

class AddonData;

class Sandbox : public Napi::ObjectWrap<Sandbox> {
public:
  static Napi::Function Define(Napi::Env env);

  /* Hides ObjectWrap's: refuses every receiver that is not one of ours with a TypeError, instead
   * of taking another addon's pointer for a Sandbox. */
  static Sandbox *Unwrap(Napi::Object object);

  explicit Sandbox(const Napi::CallbackInfo &info);
  ~Sandbox() override;

  /* Frees the C object; later calls reject with SBX_ECLOSED. */
  void Release();

private:
  friend class AddonData;
  friend class Call;

  Napi::Value Start(const Napi::CallbackInfo &info);
  Napi::Value Exec(const Napi::CallbackInfo &info);
  Napi::Value Feed(const Napi::CallbackInfo &info);
  Napi::Value EndInput(const Napi::CallbackInfo &info);
  Napi::Value Signal(const Napi::CallbackInfo &info);
  Napi::Value Resize(const Napi::CallbackInfo &info);
  Napi::Value Write(const Napi::CallbackInfo &info);
  Napi::Value Read(const Napi::CallbackInfo &info);
  Napi::Value List(const Napi::CallbackInfo &info);
  Napi::Value Stat(const Napi::CallbackInfo &info);
  Napi::Value ListDir(const Napi::CallbackInfo &info);
  Napi::Value Remove(const Napi::CallbackInfo &info);
  Napi::Value Move(const Napi::CallbackInfo &info);
  Napi::Value MakeDir(const Napi::CallbackInfo &info);
  Napi::Value ReadPart(const Napi::CallbackInfo &info);
  Napi::Value WritePart(const Napi::CallbackInfo &info);
  Napi::Value Control(const Napi::CallbackInfo &info);
  Napi::Value Close(const Napi::CallbackInfo &info);
  void Cancel(const Napi::CallbackInfo &info);
  Napi::Value Id(const Napi::CallbackInfo &info);
  Napi::Value Capabilities(const Napi::CallbackInfo &info);
  Napi::Value Isolation(const Napi::CallbackInfo &info);

  /* Call the object's own members `onProgress` and `onLife`, where it has them. */
  static void OnProgress(void *arg, sbx_slice json);
  static void OnLife(void *arg, sbx_slice json);
  void Tell(const char *member, sbx_slice json);

  Call *NewCall(const Napi::CallbackInfo &info, Napi::Value on_output = Napi::Value());
  template <typename Begin> Napi::Value Run(Call *call, Begin begin);
  Call *Find(uint64_t id) const;
  template <typename Function> Napi::Value Give(const Napi::CallbackInfo &info, Function give);

  AddonData *addon_ = nullptr;
  sbx_sandbox *sandbox_ = nullptr; /* NULL once released */
  Call *calls_ = nullptr;
  Sandbox *next_ = nullptr; /* in the environment's list while `sandbox_` is set */
  Sandbox *prev_ = nullptr;
};

} // namespace sbx

#endif
