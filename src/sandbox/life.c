/* life.c - what has become of a sandbox, as JSON for who keeps records.
 *
 * Invariant: of an error only its code and status are told. Its message may hold words of a
 * service, and goes to the caller alone. */
#include "sandbox/life.h"

#include "core/json.h"

static const char *const events[] = {
    [SBX__LIFE_CREATED] = "created",     [SBX__LIFE_STARTED] = "started",
    [SBX__LIFE_START_FAILED] = "failed", [SBX__LIFE_LOST] = "lost",
    [SBX__LIFE_DELETED] = "deleted",     [SBX__LIFE_DELETE_FAILED] = "failed",
};

static void put_error(sbx_json_out *json, sbx__life what, const sbx_err *err) {
  sbx_json_put_text(json, "what",
                    sbx_slice_str(what == SBX__LIFE_START_FAILED ? "start" : "delete"));
  sbx_json_put_text(json, "code", sbx_slice_str(sbx_err_public_code(err->code)));
  sbx_json_put_name(json, sbx_slice_str("status"));
  sbx_json_put_int(json, err->status);
}

void sbx__life_write(sbx_buf *out, const sbx__place *place, sbx__life what, const sbx_err *err) {
  const sbx_provider *provider = place->set->provider;
  sbx_json_out json;
  sbx_json_out_init(&json, out);
  sbx_json_begin_object(&json);
  sbx_json_put_text(&json, "event", sbx_slice_str(events[what]));
  if (place->id != NULL)
    sbx_json_put_text(&json, "id", sbx_slice_str(place->id));
  sbx_json_put_name(&json, sbx_slice_str("owned"));
  sbx_json_put_bool(&json, provider->session_owned(place->session));
  if (what != SBX__LIFE_CREATED && what != SBX__LIFE_LOST) {
    sbx_json_put_name(&json, sbx_slice_str("durationMs"));
    sbx_json_put_int(&json, (int64_t)(sbx_now_ms() - place->since_ms));
  }
  if (what == SBX__LIFE_STARTED && place->reopens > 0) {
    sbx_json_put_name(&json, sbx_slice_str("again"));
    sbx_json_put_bool(&json, true);
  }
  if (err != NULL)
    put_error(&json, what, err);
  sbx_json_end_object(&json);
}
