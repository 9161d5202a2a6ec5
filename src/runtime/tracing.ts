/**
 * Spans over the OpenTelemetry API alone: without an SDK they cost nothing and
 * go nowhere; with one, registered by whoever runs the process, they are there.
 */
import { messageOf } from '../kube/thrown.ts';
import { type Attributes, type Span, SpanStatusCode, trace, type Tracer } from '@opentelemetry/api';

const TRACER_NAME = 'taskflow-operator';

export function tracer(): Tracer {
  return trace.getTracer(TRACER_NAME);
}

export function withSpan<T>(
  by: Tracer,
  name: string,
  attributes: Attributes,
  run: (span: Span) => Promise<T>,
): Promise<T> {
  return by.startActiveSpan(name, { attributes }, async (span) => {
    try {
      return await run(span);
    } catch (error) {
      span.setStatus({
        code: SpanStatusCode.ERROR,
        message: messageOf(error),
      });
      throw error;
    } finally {
      span.end();
    }
  });
}
