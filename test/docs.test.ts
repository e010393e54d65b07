import { existsSync, readFileSync, readdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describeSettings } from '@patchbay/config';
import { describe, expect, it } from 'vitest';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const read = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const scripts = Object.keys((JSON.parse(read('package.json')) as { scripts: object }).scripts);

const PAGES = [
  'README.md',
  'ARCHITECTURE.md',
  'CONTRIBUTING.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.md'))
    .map((file) => join('docs', file)),
];
/** A path in the repository: begins with one of its folders, or is a file at its root. */
const PATH =
  /(?<![\w./@-])((?:packages|services|scripts|examples|infra|proto|test|docs|\.ci)\/[\w./-]*[\w-]|\.?[\w-]+\.(?:json|md|mjs))(?![\w/*-])/g;
/** What `npm start` and the builds make. */
const BUILT = /(^|\/)(dist|node_modules|\.patchbay)(\/|$)/;

/** Whether a path exists, seen from the root or from the page that names it. */
function isThere(path: string, page: string): boolean {
  return existsSync(join(ROOT, path)) || existsSync(join(ROOT, dirname(page), path));
}

describe.each(PAGES)('%s', (page) => {
  const text = read(page);

  it('names only files that exist', () => {
    const named = [...text.matchAll(PATH)].map(([, path = '']) => path).filter((path) => !BUILT.test(path));
    const links = [...text.matchAll(/\]\((?!https?:|#)([^)#]+)/g)].map(([, link = '']) => join(dirname(page), link));
    const missing = [...named, ...links].filter(
      (path) => !isThere(path, page) && !/^(agent-card|agent)\.json$/.test(path),
    );
    expect(missing).toEqual([]);
  });

  it('names only npm commands that exist', () => {
    const named = [...text.matchAll(/npm (?:run ([\w:]+)|(start|test)\b)/g)].map(
      ([, run, short]) => run ?? short ?? '',
    );
    expect(named.filter((name) => !scripts.includes(name))).toEqual([]);
  });
});

it('ARCHITECTURE.md is at most 150 lines', () => {
  expect(read('ARCHITECTURE.md').split('\n').length).toBeLessThanOrEqual(151);
});

it('what examples/ builds to is named as it is built', () => {
  for (const [, name = ''] of read('README.md').matchAll(/examples\/dist\/([\w-]+)\.js/g)) {
    expect(existsSync(join(ROOT, 'examples', `${name}.ts`))).toBe(true);
  }
});

it("the README's table of settings is the table of the code", () => {
  const rows = read('README.md')
    .split('\n')
    .filter((line) => /^\| `(PATCHBAY|KUBEMQ)_/.test(line))
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('\\|', '|')),
    );
  expect(rows).toEqual(describeSettings().map(({ variable, fallback, about }) => [`\`${variable}\``, fallback, about]));
});

it('infra/patchbay.env.example has every setting with its default', () => {
  const text = read('infra/patchbay.env.example');
  const named = [...text.matchAll(/^# ((?:PATCHBAY|KUBEMQ)_[A-Z0-9_]+)=(.*)$/gm)].map(([, variable, value]) => ({
    variable,
    value,
  }));
  const settings = describeSettings();
  expect(named.map(({ variable }) => variable)).toEqual(settings.map(({ variable }) => variable));
  for (const [index, { fallback, about, rule }] of settings.entries()) {
    const value = named[index]?.value;
    if (value === '') expect(text).toContain(`#   default: ${fallback}`);
    else expect(value).toBe(fallback);
    expect(text).toContain(`# ${about}`);
    expect(text).toContain(`# Allowed: ${rule}.`);
  }
});

it('infra/cluster-node.env.example has settings that exist, each once', () => {
  const named = [...read('infra/cluster-node.env.example').matchAll(/^([A-Z0-9_]+)=/gm)].map(([, name = '']) => name);
  const known = describeSettings().map(({ variable }) => variable);
  expect(named.filter((name) => !known.includes(name))).toEqual([]);
  expect(new Set(named).size).toBe(named.length);
  expect(named).toEqual(expect.arrayContaining(['PATCHBAY_NATS_URL', 'PATCHBAY_DATABASE_URL', 'PATCHBAY_NODE_ID']));
});
