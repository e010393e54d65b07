export { ConfigError } from './config-error.js';
export { describeConfig, describeSettings } from './describe-config.js';
export type { ConfigLine, SettingLine } from './describe-config.js';
export { loadConfig } from './load-config.js';
export type { Config, Environment, LoadedConfig, Origin } from './load-config.js';
export { SERVICES } from './settings.js';
export type { SettingName } from './settings.js';
