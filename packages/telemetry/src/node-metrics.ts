import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Counter, Meter } from '@opentelemetry/api';
import { PrometheusExporter, PrometheusSerializer } from '@opentelemetry/exporter-prometheus';
import { MeterProvider } from '@opentelemetry/sdk-metrics';
import { AgentSeries } from './agent-series.js';
import { CallDurations } from './call-durations.js';
import type { CallKind } from './call-durations.js';

/** The metrics of one node, as Prometheus text. Labels: agent and method for requests, a handful of words elsewhere. */
export class NodeMetrics {
  readonly #agents: AgentSeries;
  readonly #durations: CallDurations;
  readonly #errors: Counter;
  readonly #provider: MeterProvider;
  readonly #reader: PrometheusExporter;
  readonly #eventLoop = monitorEventLoopDelay({ resolution: 20 });
  // No target_info and no otel_scope labels: readers of these metrics look series up by their own labels.
  readonly #serializer = new PrometheusSerializer(undefined, false, undefined, true, true);

  /** @param options.prefix First part of the product's own metrics: `<prefix>_a2a_requests_total`. */
  constructor(options: { readonly prefix: string }) {
    const { prefix } = options;
    this.#agents = new AgentSeries(prefix);
    this.#durations = new CallDurations(prefix);
    this.#reader = new PrometheusExporter({
      preventServerStart: true,
      metricProducers: [this.#agents, this.#durations],
    });
    this.#provider = new MeterProvider({ readers: [this.#reader] });
    const meter = this.#provider.getMeter('patchbay');
    this.#errors = meter.createCounter(`${prefix}_a2a_errors_total`, {
      description: 'Errors of the gateway itself, by code; errors that agents answer are not counted',
    });
    this.#observeProcess(meter);
  }

  #observeProcess(meter: Meter): void {
    this.#eventLoop.enable();
    meter
      .createObservableGauge('process_resident_memory_bytes', { description: 'Resident memory' })
      .addCallback((result) => result.observe(process.memoryUsage.rss()));
    meter
      .createObservableGauge('nodejs_heap_size_used_bytes', { description: 'JavaScript heap in use' })
      .addCallback((result) => result.observe(process.memoryUsage().heapUsed));
    meter
      .createObservableGauge('nodejs_eventloop_delay_p99_seconds', {
        description: 'Delay of the event loop since the last collection, 99th percentile',
      })
      .addCallback((result) => {
        result.observe(this.#eventLoop.percentile(99) / 1e9);
        this.#eventLoop.reset();
      });
  }

  /** Counts a call to a registered agent; call it before the answer goes out. `method` from a closed set. */
  countRequest(agentId: string, method: string): void {
    this.#agents.countRequest(agentId, method);
  }

  /** Counts an open stream until the returned function is called; calling it again does nothing. */
  openStream(agentId: string): () => void {
    return this.#agents.openStream(agentId);
  }

  /** Records how long a call took. Hot path. */
  recordCall(kind: CallKind, durationMs: number): void {
    this.#durations.record(kind, durationMs);
  }

  /** Counts an error of the gateway itself. `code` from the closed set of error codes. */
  countError(code: string): void {
    this.#errors.add(1, { code });
  }

  /** Drops the series of an agent that is no longer registered. */
  forgetAgent(agentId: string): void {
    this.#agents.forget(agentId);
  }

  /** Everything as of now, in the Prometheus text format 0.0.4. */
  async render(): Promise<string> {
    const { resourceMetrics } = await this.#reader.collect();
    return `${this.#serializer.serialize(resourceMetrics).trimEnd()}\n`;
  }

  /** Ends the collection. */
  async shutdown(): Promise<void> {
    this.#eventLoop.disable();
    await this.#provider.shutdown();
  }
}
