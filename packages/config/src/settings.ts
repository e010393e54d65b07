import { defaultNodeId } from './default-node-id.js';
import {
  boolean,
  choice,
  folder,
  integer,
  networks,
  port,
  publicUrl,
  seconds,
  someOf,
  text,
  urlOf,
  urlsOf,
} from './kinds.js';
import { setting } from './setting.js';

/** The services that a node can run. */
export const SERVICES = ['registry', 'liveness', 'dispatch', 'gateway'] as const;

const DAY = 86_400;
/** 24 days: what fits a timer of Node. */
const LONGEST_TIMER = 24 * DAY;
const GIBIBYTE = 1_073_741_824;

/**
 * Every setting of the product. This table is all there is: validation, `patchbay config` and the README's table are
 * made from it.
 */
export const SETTINGS = {
  profile: setting({
    variable: 'PATCHBAY_PROFILE',
    kind: choice('patchbay', 'kubemq'),
    fallback: 'patchbay',
    about: 'Whose names the node goes by: `kubemq` sets the defaults of name and metrics prefix to `kubemq`.',
  }),
  services: setting({
    variable: 'PATCHBAY_SERVICES',
    kind: someOf(...SERVICES),
    fallback: SERVICES,
    about: 'Services that this process runs. Fewer than all need `PATCHBAY_NATS_URL`.',
  }),
  httpHost: setting({
    variable: 'PATCHBAY_HTTP_HOST',
    kind: text(/^(loopback|[A-Za-z0-9.:_-]{1,255})$/, '`loopback`, an IP address or a host name'),
    fallback: 'loopback',
    about: 'Address to listen on: `loopback` is 127.0.0.1 and ::1; `0.0.0.0` or `::` opens it to the network.',
  }),
  httpPort: setting({
    variable: 'PATCHBAY_HTTP_PORT',
    alias: 'KUBEMQ_A2A_PORT',
    kind: port,
    fallback: 9090,
    about: 'Port of registry, A2A and status page.',
  }),
  metricsPort: setting({
    variable: 'PATCHBAY_METRICS_PORT',
    kind: port,
    fallback: 8080,
    about: 'Port of `/metrics`. Unless set, a free one is taken when 8080 is in use.',
  }),
  grpcPort: setting({
    variable: 'PATCHBAY_GRPC_PORT',
    kind: port,
    fallback: 9091,
    about: 'Reserved for the gRPC front.',
  }),
  dataDir: setting({
    variable: 'PATCHBAY_DATA_DIR',
    kind: folder,
    fallback: () => folder.parse('.patchbay') ?? '.patchbay',
    fallbackText: '.patchbay',
    about: 'Folder of the embedded database; one process at a time.',
  }),
  nodeId: setting({
    variable: 'PATCHBAY_NODE_ID',
    kind: text(/^[a-z0-9-]{1,63}$/, '1-63 characters of a-z, 0-9 and "-"'),
    fallback: ({ hostName }) => defaultNodeId(hostName),
    fallbackText: 'host name + 4 random characters',
    about: 'Name of this node in the cluster and in logs.',
  }),
  publicUrl: setting<string, null>({
    variable: 'PATCHBAY_PUBLIC_URL',
    kind: publicUrl,
    fallback: null,
    fallbackText: 'as the client calls it',
    about:
      'Base URL under which clients reach this gateway; published cards point there. Unset: the `Host` of the request.',
  }),
  name: setting({
    variable: 'PATCHBAY_NAME',
    kind: text(/^[^\p{Cc}]{1,256}$/u, '1-256 characters without control characters'),
    fallback: ({ profile }) => profile,
    fallbackText: 'patchbay',
    about: "Name in the platform's own agent card.",
  }),
  metricsPrefix: setting({
    variable: 'PATCHBAY_METRICS_PREFIX',
    kind: text(/^[A-Za-z_][A-Za-z0-9_]{0,63}$/, '1-64 letters, digits and "_", not starting with a digit'),
    fallback: ({ profile }) => profile,
    fallbackText: 'patchbay',
    about: 'First part of the names of metrics.',
  }),
  a2aEnabled: setting({
    variable: 'KUBEMQ_A2A_ENABLE',
    kind: boolean,
    fallback: true,
    about: '`false` answers 404 on `/a2a` and `/agents`.',
  }),
  agentTtlSeconds: setting({
    variable: 'PATCHBAY_AGENT_TTL_SECONDS',
    kind: seconds(0, 3650 * DAY),
    fallback: 300,
    about: 'Agents silent for longer are removed; 0 = never.',
  }),
  sweepIntervalSeconds: setting({
    variable: 'PATCHBAY_SWEEP_INTERVAL_SECONDS',
    kind: seconds(0.1, DAY),
    fallback: 60,
    about: 'Time between two searches for silent agents.',
  }),
  maxAgents: setting({
    variable: 'PATCHBAY_MAX_AGENTS',
    kind: integer(0, 100_000_000),
    fallback: 0,
    about: 'Most agents that can be registered; 0 = unlimited.',
  }),
  agentConcurrency: setting({
    variable: 'PATCHBAY_AGENT_CONCURRENCY',
    kind: integer(1, 1_000_000),
    fallback: 100,
    about: 'Calls and streams that one agent gets at the same time; more are refused at once.',
  }),
  defaultTimeoutSeconds: setting({
    variable: 'PATCHBAY_DEFAULT_TIMEOUT_SECONDS',
    kind: seconds(0.001, LONGEST_TIMER),
    fallback: 30,
    about: 'Time for a call that names none (`params.configuration.timeout`).',
  }),
  maxTimeoutSeconds: setting({
    variable: 'PATCHBAY_MAX_TIMEOUT_SECONDS',
    kind: seconds(0.001, LONGEST_TIMER),
    fallback: 3600,
    about: 'Longest time for a call; longer wishes are lowered to it.',
  }),
  streamIdleSeconds: setting({
    variable: 'PATCHBAY_STREAM_IDLE_SECONDS',
    kind: seconds(0.1, LONGEST_TIMER),
    fallback: 900,
    about: 'A stream whose agent is silent for longer is ended.',
  }),
  keepaliveSeconds: setting({
    variable: 'PATCHBAY_KEEPALIVE_SECONDS',
    kind: seconds(0, DAY),
    fallback: 30,
    about: 'A silent stream gets a comment this often; 0 = never.',
  }),
  drainSeconds: setting({
    variable: 'PATCHBAY_DRAIN_SECONDS',
    kind: seconds(0, 3600),
    fallback: 10,
    about: 'Time that calls in flight get when the node stops.',
  }),
  drainDelaySeconds: setting({
    variable: 'PATCHBAY_DRAIN_DELAY_SECONDS',
    kind: seconds(0, 3600),
    fallback: 0,
    about: 'Time that `/readyz` answers 503 before draining starts, so that load balancers notice.',
  }),
  maxResponseBytes: setting({
    variable: 'PATCHBAY_MAX_RESPONSE_BYTES',
    kind: integer(1024, GIBIBYTE),
    fallback: 10_485_760,
    about: 'Longest reply of an agent, and longest event of a stream.',
  }),
  maxRequestBytes: setting({
    variable: 'PATCHBAY_MAX_REQUEST_BYTES',
    kind: integer(1024, GIBIBYTE),
    fallback: 10_485_760,
    about: 'Longest body of a call.',
  }),
  maxBufferedBytes: setting({
    variable: 'PATCHBAY_MAX_BUFFERED_BYTES',
    kind: integer(1_048_576, 1024 * GIBIBYTE),
    fallback: 268_435_456,
    about:
      'Most memory for bodies of calls and for replies that clients have not read, those over 64 KiB; what finds no room is refused.',
  }),
  maxCardBytes: setting({
    variable: 'PATCHBAY_MAX_CARD_BYTES',
    kind: integer(1024, 16_777_216),
    fallback: 262_144,
    about: 'Longest agent card.',
  }),
  trustProxy: setting({
    variable: 'PATCHBAY_TRUST_PROXY',
    kind: networks,
    fallback: [],
    about: 'Proxies whose `X-Forwarded-…` headers count: addresses and networks, or `none`.',
  }),
  logLevel: setting({
    variable: 'PATCHBAY_LOG_LEVEL',
    kind: choice('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    fallback: 'info',
    about: 'Least level that is logged.',
  }),
  natsUrl: setting<readonly string[], null>({
    variable: 'PATCHBAY_NATS_URL',
    kind: urlsOf('nats', 'tls'),
    fallback: null,
    fallbackText: 'in-process bus',
    about: 'NATS servers that connect the nodes of a cluster.',
    isSecret: true,
  }),
  databaseUrl: setting<string, null>({
    variable: 'PATCHBAY_DATABASE_URL',
    kind: urlOf('postgres', 'postgresql'),
    fallback: null,
    fallbackText: 'embedded database',
    about: 'Postgres 14 or later that the nodes of a cluster share.',
    isSecret: true,
  }),
  localFirst: setting({
    variable: 'PATCHBAY_LOCAL_FIRST',
    kind: boolean,
    fallback: true,
    about: 'Whether a call goes to a dispatcher in the same process, if there is one, without crossing NATS.',
  }),
} as const;

/** Name of a setting in code. */
export type SettingName = keyof typeof SETTINGS;
