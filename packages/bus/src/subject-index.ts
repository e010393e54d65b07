import { isWildcard } from './subject.js';

/** What the index needs to know of a subscriber. */
export interface IndexedSubscriber {
  readonly subject: string;
  /** Name of its queue group; undefined when it wants every message. */
  readonly queue: string | undefined;
}

/** Members that share the messages of one subject, in turn. */
export class QueueGroup<T> {
  readonly name: string;
  readonly members: T[] = [];
  #turn: number;

  constructor(name: string, firstTurn = 0) {
    this.name = name;
    this.#turn = firstTurn;
  }

  /** The member whose turn it is. */
  next(): T | undefined {
    const turn = this.#turn % this.members.length;
    this.#turn = turn + 1;
    return this.members[turn];
  }
}

/** Who gets a message: everybody in `plain`, and one of each group. */
export interface SubjectMatch<T> {
  readonly plain: readonly T[];
  readonly groups: readonly QueueGroup<T>[];
}

/** Subscribers of one subject or pattern. */
class Entry<T extends IndexedSubscriber> implements SubjectMatch<T> {
  readonly plain: T[] = [];
  readonly groups: QueueGroup<T>[] = [];
  /** This entry together with the wildcards that match its subject too, as of `mergedAt`. */
  merged: SubjectMatch<T> | undefined;
  mergedAt = -1;

  add(subscriber: T): void {
    this.merged = undefined;
    if (subscriber.queue === undefined) {
      this.plain.push(subscriber);
      return;
    }
    groupNamed(this.groups, subscriber.queue).members.push(subscriber);
  }

  remove(subscriber: T): void {
    this.merged = undefined;
    if (subscriber.queue === undefined) {
      removeFrom(this.plain, subscriber);
      return;
    }
    const group = this.groups.find((candidate) => candidate.name === subscriber.queue);
    if (group === undefined) return;
    removeFrom(group.members, subscriber);
    if (group.members.length === 0) removeFrom(this.groups, group);
  }

  get isEmpty(): boolean {
    return this.plain.length === 0 && this.groups.length === 0;
  }
}

interface WildcardNode<T extends IndexedSubscriber> {
  readonly children: Map<string, WildcardNode<T>>;
  readonly entry: Entry<T>;
}

/**
 * Finds the subscribers of a subject. Hot path: a subject that somebody subscribed to by name is one map lookup, and
 * the wildcards that match it as well are worked out once until a wildcard comes or goes.
 */
export class SubjectIndex<T extends IndexedSubscriber> {
  readonly #exact = new Map<string, Entry<T>>();
  readonly #wildcards: WildcardNode<T> = { children: new Map(), entry: new Entry<T>() };
  #wildcardCount = 0;
  #generation = 0;
  #size = 0;

  /** How many subscribers there are. */
  get size(): number {
    return this.#size;
  }

  add(subscriber: T): void {
    this.#size++;
    if (isWildcard(subscriber.subject)) {
      this.#wildcardCount++;
      this.#generation++;
      this.#wildcardNode(subscriber.subject).entry.add(subscriber);
      return;
    }
    let entry = this.#exact.get(subscriber.subject);
    if (entry === undefined) this.#exact.set(subscriber.subject, (entry = new Entry<T>()));
    entry.add(subscriber);
  }

  /** Takes out a subscriber that was added before. */
  remove(subscriber: T): void {
    this.#size--;
    if (isWildcard(subscriber.subject)) {
      this.#wildcardCount--;
      this.#generation++;
      this.#removeWildcard(subscriber);
      return;
    }
    const entry = this.#exact.get(subscriber.subject);
    entry?.remove(subscriber);
    if (entry?.isEmpty === true) this.#exact.delete(subscriber.subject);
  }

  /** Who gets a message to `subject`; undefined when nobody does. */
  match(subject: string): SubjectMatch<T> | undefined {
    const exact = this.#exact.get(subject);
    if (this.#wildcardCount === 0) return exact;
    if (exact === undefined) return merge(this.#wildcardMatches(subject));
    if (exact.merged === undefined || exact.mergedAt !== this.#generation) {
      const wildcards = this.#wildcardMatches(subject);
      exact.merged = wildcards.length === 0 ? exact : merge([exact, ...wildcards]);
      exact.mergedAt = this.#generation;
    }
    return exact.merged;
  }

  #wildcardNode(pattern: string): WildcardNode<T> {
    let node = this.#wildcards;
    for (const token of pattern.split('.')) {
      let child = node.children.get(token);
      if (child === undefined) node.children.set(token, (child = { children: new Map(), entry: new Entry<T>() }));
      node = child;
    }
    return node;
  }

  #removeWildcard(subscriber: T): void {
    const path: { readonly parent: WildcardNode<T>; readonly token: string; readonly node: WildcardNode<T> }[] = [];
    let parent = this.#wildcards;
    for (const token of subscriber.subject.split('.')) {
      const node = parent.children.get(token);
      if (node === undefined) return;
      path.push({ parent, token, node });
      parent = node;
    }
    parent.entry.remove(subscriber);
    for (const { parent, token, node } of path.toReversed()) {
      if (!node.entry.isEmpty || node.children.size > 0) return;
      parent.children.delete(token);
    }
  }

  #wildcardMatches(subject: string): Entry<T>[] {
    const found: Entry<T>[] = [];
    collect(this.#wildcards, subject.split('.'), 0, found);
    return found;
  }
}

function collect<T extends IndexedSubscriber>(
  node: WildcardNode<T>,
  tokens: readonly string[],
  depth: number,
  found: Entry<T>[],
): void {
  const token = tokens[depth];
  if (token === undefined) {
    if (!node.entry.isEmpty) found.push(node.entry);
    return;
  }
  const rest = node.children.get('>');
  if (rest !== undefined) found.push(rest.entry);
  const named = node.children.get(token);
  if (named !== undefined) collect(named, tokens, depth + 1, found);
  const any = node.children.get('*');
  if (any !== undefined) collect(any, tokens, depth + 1, found);
}

/** One match out of several; groups of one name become one group, as on a NATS server. */
function merge<T extends IndexedSubscriber>(entries: readonly Entry<T>[]): SubjectMatch<T> | undefined {
  const [first] = entries;
  if (first === undefined || entries.length === 1) return first;
  const plain: T[] = [];
  const groups: QueueGroup<T>[] = [];
  for (const entry of entries) {
    plain.push(...entry.plain);
    for (const group of entry.groups) groupNamed(groups, group.name).members.push(...group.members);
  }
  return { plain, groups };
}

function groupNamed<T>(groups: QueueGroup<T>[], name: string): QueueGroup<T> {
  let group = groups.find((candidate) => candidate.name === name);
  // A random first turn, so that groups which are merged anew for each message are fair too.
  if (group === undefined) groups.push((group = new QueueGroup<T>(name, Math.floor(Math.random() * 0x1_0000))));
  return group;
}

function removeFrom<T>(list: T[], item: T): void {
  const at = list.indexOf(item);
  if (at !== -1) list.splice(at, 1);
}
