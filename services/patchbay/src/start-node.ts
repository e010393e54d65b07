import { setTimeout as sleep } from 'node:timers/promises';
import { Subjects } from '@patchbay/bus';
import type { LoadedConfig } from '@patchbay/config';
import { ByteBudget, systemClock } from '@patchbay/core';
import { Directory, DirectoryReplica, Membership, ServiceNodes } from '@patchbay/directory';
import { startDispatch } from '@patchbay/dispatch';
import {
  assertCanListen,
  HTTP_SETTINGS,
  METRICS_SETTINGS,
  Readiness,
  startHttpFront,
  startMetricsServer,
} from '@patchbay/gateway';
import { startLiveness } from '@patchbay/liveness';
import { startRegistry } from '@patchbay/registry';
import { LivenessClient, RegistryClient } from '@patchbay/service-api';
import { openStore } from '@patchbay/store';
import { NodeMetrics } from '@patchbay/telemetry';
import type { Logger } from '@patchbay/telemetry';
import { openBus } from './open-bus.js';
import { watchForSecondRegistry } from './second-registry.js';
import { Shutdown } from './shutdown.js';
import { storeOptions } from './store-options.js';
import { VERSION } from './version.js';

/** What a node needs beside its settings. */
export interface NodeOptions {
  readonly logger: Logger;
  /** Aborts the start: what is open by then is closed again. Later it means nothing; use `stop()`. */
  readonly signal?: AbortSignal;
  /** Told before the embedded database is created, which takes seconds. Default: nobody. */
  readonly onCreatingDatabase?: () => void;
  /** The node cannot go on and must be stopped. Called at most once. Default: nothing happens. */
  readonly onFatal?: (message: string) => void;
}

/** A running node. */
export interface RunningNode {
  /** Base URL of the HTTP front for this machine, such as `http://localhost:9090`; null without one. */
  readonly url: string | null;
  /** Base URL of metrics and health. */
  readonly metricsUrl: string;
  /** Whether metrics are on another port than 8080 because that was taken. */
  readonly isMetricsPortMoved: boolean;
  /**
   * Turns not ready, drains within the settings' times, and closes everything. Idempotent.
   * @returns whether all of it closed well
   */
  stop(): Promise<boolean>;
}

/** The first load of the directory; a registry elsewhere may still be starting. */
const DIRECTORY_PATIENCE_MS = 60_000;
/** After the soft deadline, for closing what no longer has anything in hand. */
const CLOSING_GRACE_MS = 10_000;
/** Before the soft deadline: the time for writing errors to those whose calls are still running. */
const LAST_WORDS_MS = 500;
/** What writes to the database gets so much time to end even when calls in flight used up the soft deadline. */
const WRITERS_PATIENCE_MS = 3_000;

/**
 * Builds a node from its settings and starts it: telemetry, store, bus, directory, services, fronts, ready. Each part
 * gets what it needs as an argument and says here how it is closed.
 * @throws PatchbayError with what to do, for what a person can mend (ports, data directory, database)
 */
export async function startNode(loaded: LoadedConfig, options: NodeOptions): Promise<RunningNode> {
  const { config } = loaded;
  const { logger, signal } = options;
  const { nodeId } = config;
  const shutdown = new Shutdown(systemClock, logger);
  const limits = { softMs: config.drainSeconds * 1_000, graceMs: CLOSING_GRACE_MS };

  try {
    // Telemetry
    const metrics = new NodeMetrics({ prefix: config.metricsPrefix });
    shutdown.defer('metrics', () => metrics.shutdown());

    // Ports: one that is taken is said before anything is made.
    const host = config.httpHost;
    const isMetricsPortSet = loaded.origins.metricsPort.origin !== 'default';
    if (config.services.includes('gateway')) {
      await assertCanListen({ host, port: config.httpPort, settings: HTTP_SETTINGS });
    }
    if (isMetricsPortSet) await assertCanListen({ host, port: config.metricsPort, settings: METRICS_SETTINGS });
    signal?.throwIfAborted();

    // Store: only for the services that write to it.
    const runs = new Set<string>(config.services);
    const needsStore = runs.has('registry') || runs.has('liveness');
    const store = needsStore ? await openStore(storeOptions(config, logger, options.onCreatingDatabase)) : undefined;
    if (store !== undefined) shutdown.defer('store', () => store.close());
    signal?.throwIfAborted();

    // Bus
    const subjects = new Subjects();
    const bus = await openBus(config, logger, signal);
    shutdown.defer('bus', () => bus.close());
    signal?.throwIfAborted();

    // Directory: this node's copy of the registry, and who else is there.
    const directory = new Directory();
    const membership = new Membership({
      bus,
      subjects,
      directory,
      nodeId,
      version: VERSION,
      services: config.services,
      logger,
      onConflict: () => {
        options.onFatal?.(`another node has the id ${nodeId}; give each node its own PATCHBAY_NODE_ID`);
      },
    });
    const nodesOf = (service: string): ServiceNodes => {
      const nodes = new ServiceNodes({ membership, serves: (beat) => beat.services.includes(service) });
      shutdown.defer(`nodes of ${service}`, () => nodes.close());
      return nodes;
    };
    const registryNodes = nodesOf('registry');
    const livenessNodes = nodesOf('liveness');
    const registryClient = new RegistryClient(bus, subjects, registryNodes);
    const livenessClient = new LivenessClient(bus, subjects, livenessNodes);
    const replica = new DirectoryReplica({
      bus,
      subjects,
      directory,
      registry: registryClient,
      nodeId,
      logger,
      membership,
    });
    if (store !== undefined && config.databaseUrl === null) {
      shutdown.defer('one truth', watchForSecondRegistry(membership, options.onFatal));
    }
    membership.start();
    shutdown.defer('membership', () => membership.stop());
    shutdown.defer('directory', () => replica.stop());
    if (store !== undefined) {
      shutdown.defer(
        'store status',
        store.onStatus((isUp) => membership.report({ store: isUp })),
      );
    }

    // Services
    const common = { bus, subjects, directory, replica, membership, registry: registryClient, nodeId, logger };
    // What dispatch and the front hold for clients comes out of one budget.
    const budget = new ByteBudget(config.maxBufferedBytes);
    if (runs.has('registry') && store !== undefined) {
      const { maxAgents, maxCardBytes } = config;
      const isStoreUp = (): boolean => store.isUp;
      const registry = startRegistry({ ...common, store: store.registry, isStoreUp, maxAgents, maxCardBytes });
      shutdown.defer('registry', (withinMs) => registry.drain(Math.max(withinMs, WRITERS_PATIENCE_MS)));
    }
    replica.start();
    await replica.ready(DIRECTORY_PATIENCE_MS);
    signal?.throwIfAborted();
    if (runs.has('liveness') && store !== undefined) {
      const { agentTtlSeconds: ttlSeconds, sweepIntervalSeconds } = config;
      const liveness = startLiveness({ ...common, store: store.liveness, ttlSeconds, sweepIntervalSeconds });
      shutdown.defer('liveness', (withinMs) => liveness.drain(Math.max(withinMs, WRITERS_PATIENCE_MS)));
    }
    const dispatch = runs.has('dispatch')
      ? startDispatch({
          ...common,
          budget,
          agentConcurrency: config.agentConcurrency,
          // On a bus inside this process nobody else can be.
          ...(config.natsUrl === null ? { settleMs: 0 } : {}),
          maxResponseBytes: config.maxResponseBytes,
          streamIdleMs: config.streamIdleSeconds * 1_000,
        })
      : undefined;
    if (dispatch !== undefined) {
      shutdown.defer('dispatch', (withinMs) => dispatch.drain(withinMs));
      await dispatch.ready;
    }
    await bus.flush();

    // Fronts
    const readiness = new Readiness(() => [
      { name: 'directory', isMet: replica.isCaughtUp, isRequired: false },
      { name: 'bus', isMet: bus.isUp, isRequired: false },
      ...(store === undefined ? [] : [{ name: 'store', isMet: store.isUp, isRequired: false }]),
    ]);
    const metricsServer = await startMetricsServer({
      host,
      port: config.metricsPort,
      isPortSet: isMetricsPortSet,
      metrics,
      readiness,
    });
    shutdown.defer('metrics server', () => metricsServer.close());
    const front = runs.has('gateway')
      ? await startHttpFront({
          ...common,
          budget,
          liveness: livenessClient,
          settings: { ...config, version: VERSION },
          readiness,
          metrics,
        })
      : undefined;
    if (front !== undefined) {
      shutdown.defer('HTTP front', async (withinMs) => {
        // What is still running near the end is failed by dispatch, so that streams end with an error event, not a cut.
        const lastWords = setTimeout(() => void dispatch?.drain(0), Math.max(0, withinMs - LAST_WORDS_MS));
        await front.drain(withinMs);
        clearTimeout(lastWords);
      });
    }
    signal?.throwIfAborted();

    // Ready
    const stop = async (): Promise<boolean> => {
      readiness.startDraining();
      membership.report({ draining: true });
      await sleep(config.drainDelaySeconds * 1_000);
      return shutdown.run(limits);
    };
    logger.info({ version: VERSION, services: config.services, agents: directory.size }, 'ready');
    return {
      url: front === undefined ? null : localUrl(host, front.port),
      metricsUrl: localUrl(host, metricsServer.port),
      isMetricsPortMoved: metricsServer.isFallbackPort,
      stop,
    };
  } catch (error) {
    await shutdown.run({ ...limits, softMs: 0 });
    throw error;
  }
}

/** The URL that a person on this machine uses for a front that listens on `host`. */
function localUrl(host: string, port: number): string {
  const isEverywhere = host === 'loopback' || host === '0.0.0.0' || host === '::';
  return `http://${isEverywhere ? 'localhost' : host.includes(':') ? `[${host}]` : host}:${port}`;
}
