import { ValueType } from '@opentelemetry/api';
import { hrTime } from '@opentelemetry/core';
import { emptyResource } from '@opentelemetry/resources';
import { AggregationTemporality, DataPointType } from '@opentelemetry/sdk-metrics';
import type { CollectionResult, DataPoint, Histogram, MetricProducer } from '@opentelemetry/sdk-metrics';

/** How a call is answered. */
export type CallKind = 'unary' | 'stream';

/** Upper bounds of the buckets, in seconds: from a local echo to the longest calls. */
const BOUNDARIES = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];

/** The durations of one kind of call. */
class Durations {
  readonly counts = Array.from({ length: BOUNDARIES.length + 1 }, () => 0);
  sum = 0;
  count = 0;

  add(seconds: number): void {
    let bucket = 0;
    while (bucket < BOUNDARIES.length && seconds > (BOUNDARIES[bucket] ?? 0)) bucket += 1;
    this.counts[bucket] = (this.counts[bucket] ?? 0) + 1;
    this.sum += seconds;
    this.count += 1;
  }
}

/**
 * How long calls took. A producer of its own instead of an instrument of the SDK, which writes the labels as JSON text
 * for every call, to look its series up by that.
 */
export class CallDurations implements MetricProducer {
  readonly #prefix: string;
  readonly #byKind: Readonly<Record<CallKind, Durations>> = { unary: new Durations(), stream: new Durations() };
  readonly #startTime = hrTime();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Hot path. */
  record(kind: CallKind, durationMs: number): void {
    this.#byKind[kind].add(durationMs / 1000);
  }

  collect(): Promise<CollectionResult> {
    const endTime = hrTime();
    const dataPoints: DataPoint<Histogram>[] = [];
    for (const [kind, { counts, sum, count }] of Object.entries(this.#byKind)) {
      if (count === 0) continue;
      const value = { buckets: { boundaries: BOUNDARIES, counts: [...counts] }, sum, count };
      dataPoints.push({ attributes: { kind }, value, startTime: this.#startTime, endTime });
    }
    const metric = {
      dataPointType: DataPointType.HISTOGRAM,
      aggregationTemporality: AggregationTemporality.CUMULATIVE,
      descriptor: {
        name: `${this.#prefix}_a2a_call_duration_seconds`,
        description: 'Time from a call to the end of its answer',
        unit: '',
        valueType: ValueType.DOUBLE,
      },
      dataPoints,
    } as const;
    const scopeMetrics = [{ scope: { name: 'patchbay' }, metrics: dataPoints.length === 0 ? [] : [metric] }];
    return Promise.resolve({ resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] });
  }
}
