// Types of "cloudsandbox/otel"; `@opentelemetry/api` is a peer that only who imports it needs.

/** What is used of OpenTelemetry's Span. */
export interface SpanLike {
  setAttribute(name: string, value: any): unknown;
  setAttributes(attributes: Record<string, any>): unknown;
  addEvent(name: string, attributes?: any, time?: any): unknown;
  setStatus(status: { code: any }): unknown;
  end(time?: any): void;
}

/** What is used of OpenTelemetry's Tracer. */
export interface TracerLike {
  startSpan(name: string, options?: any): SpanLike;
}

export interface TraceOptions {
  /** Default: `trace.getTracer("cloudsandbox")` of the installed API. */
  tracer?: TracerLike | undefined;
}

/** Makes spans of all records of this thread from now on, until the returned function is called. */
export function traceSandboxes(options?: TraceOptions): () => void;
