export { startHttpFront } from './http/http-front.js';
export type { HttpFront } from './http/http-front.js';
export type { HttpFrontOptions, HttpFrontSettings, HttpPatience } from './http/front-options.js';
export { assertCanListen, HTTP_SETTINGS, METRICS_SETTINGS } from './listen.js';
export { startMetricsServer } from './metrics-server.js';
export type { MetricsServer, MetricsServerOptions } from './metrics-server.js';
export { Readiness } from './readiness.js';
export type { ReadinessCondition, ReadinessReport } from './readiness.js';
