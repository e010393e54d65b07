import type { Bus, Subjects } from '@patchbay/bus';
import type { ByteBudget } from '@patchbay/core';
import type { Directory, Membership } from '@patchbay/directory';
import type { LivenessClient, RegistryClient } from '@patchbay/service-api';
import type { Logger, NodeMetrics } from '@patchbay/telemetry';
import type { Readiness } from '../readiness.js';

/** The settings that the HTTP front reads; named as in the configuration. */
export interface HttpFrontSettings {
  readonly httpHost: string;
  readonly httpPort: number;
  /** Base URL under which clients reach this gateway; null: the request's own host. */
  readonly publicUrl: string | null;
  /** Proxies whose `X-Forwarded-…` headers count: addresses and networks. */
  readonly trustProxy: readonly string[];
  /** Name in the platform's own card. */
  readonly name: string;
  /** Version of the product. */
  readonly version: string;
  readonly nodeId: string;
  /** `false`: `/a2a` and `/agents` are 404. */
  readonly a2aEnabled: boolean;
  readonly maxRequestBytes: number;
  readonly maxCardBytes: number;
  readonly defaultTimeoutSeconds: number;
  readonly maxTimeoutSeconds: number;
  readonly streamIdleSeconds: number;
  /** 0 = no keepalives. */
  readonly keepaliveSeconds: number;
  /** Whether the bus serves calls in this process where it can. Default true. */
  readonly localFirst?: boolean;
}

/** How long clients may take. Not settings: they are part of what the front promises. */
export interface HttpPatience {
  /** From the first byte (or the connection) to the end of the headers. Default 10,000. */
  readonly headersMs: number;
  /** From the first byte to the end of the body. Default 30,000. */
  readonly requestMs: number;
  /** A reply of which nothing was taken for so long is given up. Default 30,000. */
  readonly stalledReplyMs: number;
}

/** What the HTTP front is built from. */
export interface HttpFrontOptions {
  readonly bus: Bus;
  readonly subjects: Subjects;
  readonly directory: Directory;
  /** Who else is there. Absent: nobody. */
  readonly membership?: Membership;
  readonly registry: RegistryClient;
  readonly liveness: LivenessClient;
  readonly settings: HttpFrontSettings;
  readonly readiness: Readiness;
  readonly metrics: NodeMetrics;
  readonly logger: Logger;
  readonly patience?: Partial<HttpPatience>;
  /** The process's bound for what it holds for clients. Default: one of its own with the default size. */
  readonly budget?: ByteBudget;
}
