import { ValueType } from '@opentelemetry/api';
import type { Attributes, HrTime } from '@opentelemetry/api';
import { hrTime } from '@opentelemetry/core';
import { emptyResource } from '@opentelemetry/resources';
import { AggregationTemporality, DataPointType } from '@opentelemetry/sdk-metrics';
import type { CollectionResult, DataPoint, MetricData, MetricProducer } from '@opentelemetry/sdk-metrics';

/** What is counted for one agent. */
interface AgentCounts {
  readonly requests: Map<string, number>;
  /** Undefined until the first stream: an agent that never streamed has no series. */
  openStreams: number | undefined;
  isForgotten: boolean;
}

/**
 * The two metrics that have a series for each agent. A producer of its own instead of instruments of the SDK, because
 * those keep every series that ever was, fold what is over 2,000 into one, and hash the labels on every call; here an
 * agent that left takes its series along, and a count is one look into a map.
 */
export class AgentSeries implements MetricProducer {
  readonly #prefix: string;
  readonly #agents = new Map<string, AgentCounts>();
  readonly #startTime = hrTime();

  constructor(prefix: string) {
    this.#prefix = prefix;
  }

  /** Hot path. */
  countRequest(agentId: string, method: string): void {
    const { requests } = this.#countsOf(agentId);
    requests.set(method, (requests.get(method) ?? 0) + 1);
  }

  /** Counts an open stream until the returned function is called (once; later calls do nothing). */
  openStream(agentId: string): () => void {
    const counts = this.#countsOf(agentId);
    counts.openStreams = (counts.openStreams ?? 0) + 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      counts.openStreams = (counts.openStreams ?? 1) - 1;
      this.#dropWhenDone(agentId, counts);
    };
  }

  /** Drops the agent's series, once its last stream has closed. */
  forget(agentId: string): void {
    const counts = this.#agents.get(agentId);
    if (counts === undefined) return;
    counts.isForgotten = true;
    this.#dropWhenDone(agentId, counts);
  }

  #dropWhenDone(agentId: string, counts: AgentCounts): void {
    const isDone = counts.isForgotten && (counts.openStreams ?? 0) === 0;
    if (isDone && this.#agents.get(agentId) === counts) this.#agents.delete(agentId);
  }

  #countsOf(agentId: string): AgentCounts {
    let counts = this.#agents.get(agentId);
    if (counts === undefined) {
      counts = { requests: new Map(), openStreams: undefined, isForgotten: false };
      this.#agents.set(agentId, counts);
    }
    counts.isForgotten = false;
    return counts;
  }

  collect(): Promise<CollectionResult> {
    const endTime = hrTime();
    const requests: DataPoint<number>[] = [];
    const streams: DataPoint<number>[] = [];
    for (const [agentId, counts] of this.#agents) {
      for (const [method, value] of counts.requests) {
        requests.push(this.#point({ agent_id: agentId, method }, value, endTime));
      }
      if (counts.openStreams !== undefined) {
        streams.push(this.#point({ agent_id: agentId }, counts.openStreams, endTime));
      }
    }
    const metrics: MetricData[] = [
      {
        dataPointType: DataPointType.SUM,
        isMonotonic: true,
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        descriptor: descriptor(`${this.#prefix}_a2a_requests_total`, 'Calls to registered agents'),
        dataPoints: requests,
      },
      {
        dataPointType: DataPointType.GAUGE,
        aggregationTemporality: AggregationTemporality.CUMULATIVE,
        descriptor: descriptor(`${this.#prefix}_a2a_sse_streams_active`, 'Event streams that are open now'),
        dataPoints: streams,
      },
    ];
    const scopeMetrics = [{ scope: { name: 'patchbay' }, metrics }];
    return Promise.resolve({ resourceMetrics: { resource: emptyResource(), scopeMetrics }, errors: [] });
  }

  #point(attributes: Attributes, value: number, endTime: HrTime): DataPoint<number> {
    return { attributes, value, startTime: this.#startTime, endTime };
  }
}

function descriptor(name: string, description: string): MetricData['descriptor'] {
  return { name, description, unit: '', valueType: ValueType.INT };
}
