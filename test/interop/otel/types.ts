// OpenTelemetry's own tracer is what traceSandboxes() takes.
import { trace } from "@opentelemetry/api";
import { traceSandboxes } from "cloudsandbox/otel";

export const stop: () => void = traceSandboxes({ tracer: trace.getTracer("mine") });
// @ts-expect-error a provider is no tracer
traceSandboxes({ tracer: trace.getTracerProvider() });
