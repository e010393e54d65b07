import { isIP, BlockList } from 'node:net';
import { resolve } from 'node:path';

/** How one sort of value is read from text. */
export interface Kind<T> {
  /** What is allowed, in words; completes "must be …". */
  readonly rule: string;
  /** The value, or undefined when `text` breaks the rule. `text` is trimmed and not empty. */
  parse(text: string): T | undefined;
  /** The value as one would write it in the environment. */
  format(value: T): string;
}

/** A whole number within bounds, both included. */
export function integer(min: number, max: number, rule = `a whole number from ${min} to ${max}`): Kind<number> {
  return {
    rule,
    parse: (text) => {
      const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
    format: String,
  };
}

/** A TCP port; 0 takes a free one. */
export const port: Kind<number> = integer(0, 65_535, 'a port from 0 to 65535 (0 takes a free one)');

/** A time in seconds, fractions allowed. The bounds are included. */
export function seconds(min: number, max: number): Kind<number> {
  return {
    rule: `seconds from ${min} to ${max}`,
    parse: (text) => {
      const value = /^\d{1,12}(\.\d{1,6})?$/.test(text) ? Number(text) : Number.NaN;
      return value >= min && value <= max ? value : undefined;
    },
    format: String,
  };
}

const BOOLEANS: Readonly<Record<string, boolean>> = {
  true: true,
  1: true,
  yes: true,
  false: false,
  0: false,
  no: false,
};

/** A switch; upper and lower case are the same. */
export const boolean: Kind<boolean> = {
  rule: 'true, false, 1, 0, yes or no',
  parse: (text) => (Object.hasOwn(BOOLEANS, text.toLowerCase()) ? BOOLEANS[text.toLowerCase()] : undefined),
  format: String,
};

/** One of a few words. */
export function choice<const T extends string>(...words: readonly T[]): Kind<T> {
  return {
    rule: `one of ${words.join(', ')}`,
    parse: (text) => words.find((word) => word === text),
    format: String,
  };
}

/** Some of a few words, separated by commas; kept in the order of `words`. */
export function someOf<const T extends string>(...words: readonly T[]): Kind<readonly T[]> {
  return {
    rule: `one or more of ${words.join(', ')}, separated by commas`,
    parse: (text) => {
      const given = splitList(text);
      const isKnown = given.length > 0 && given.every((word) => words.some((known) => known === word));
      return isKnown ? words.filter((word) => given.includes(word)) : undefined;
    },
    format: (value) => value.join(','),
  };
}

/** Text that matches a pattern. */
export function text(pattern: RegExp, rule: string): Kind<string> {
  return { rule, parse: (value) => (pattern.test(value) ? value : undefined), format: String };
}

/** A folder; relative ones start at the working directory. */
export const folder: Kind<string> = {
  rule: 'the path of a folder',
  parse: (path) => (path.includes('\0') ? undefined : resolve(path)),
  format: String,
};

/** An absolute URL without credentials, query or fragment; a trailing slash is dropped. */
export const publicUrl: Kind<string> = {
  rule: 'an absolute http:// or https:// URL without credentials, query or fragment',
  parse: (value) => {
    const url = parseUrl(value);
    if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return undefined;
    if (url.username !== '' || url.password !== '' || url.search !== '' || url.hash !== '') return undefined;
    return url.href.replace(/\/+$/, '');
  },
  format: String,
};

/** One URL with one of the given schemes (`nats`, `postgres`, …). */
export function urlOf(...schemes: readonly string[]): Kind<string> {
  return {
    rule: `a URL that starts with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}`,
    parse: (value) => (isUrlOf(value, schemes) ? value : undefined),
    format: String,
  };
}

/** URLs with one of the given schemes, separated by commas. */
export function urlsOf(...schemes: readonly string[]): Kind<readonly string[]> {
  return {
    rule: `URLs that start with ${schemes.map((scheme) => `${scheme}://`).join(' or ')}, separated by commas`,
    parse: (value) => {
      const urls = splitList(value);
      return urls.length > 0 && urls.every((url) => isUrlOf(url, schemes)) ? urls : undefined;
    },
    format: (value) => value.join(','),
  };
}

/** `none`, or the addresses and networks of the proxies whose forwarded headers count. */
export const networks: Kind<readonly string[]> = {
  rule: 'none, or IP addresses and CIDR networks such as 10.0.0.0/8, separated by commas',
  parse: (value) => {
    if (value === 'none') return [];
    const given = splitList(value);
    return given.length > 0 && given.every(isNetwork) ? given : undefined;
  },
  format: (value) => (value.length === 0 ? 'none' : value.join(',')),
};

function splitList(value: string): string[] {
  return value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

function parseUrl(value: string): URL | undefined {
  return URL.canParse(value) ? new URL(value) : undefined;
}

function isUrlOf(value: string, schemes: readonly string[]): boolean {
  const url = parseUrl(value);
  return url !== undefined && schemes.includes(url.protocol.slice(0, -1)) && value.includes('://');
}

function isNetwork(value: string): boolean {
  const [address = '', prefix, ...rest] = value.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  if (prefix === undefined) return true;
  if (!/^\d{1,3}$/.test(prefix)) return false;
  try {
    new BlockList().addSubnet(address, Number(prefix), version === 4 ? 'ipv4' : 'ipv6');
    return true;
  } catch {
    return false; // a prefix longer than the address
  }
}
