/** One thing that must be true for this node to serve. */
export interface ReadinessCondition {
  /** Short name, such as `bus` or `directory`. */
  readonly name: string;
  readonly isMet: boolean;
  /** What is the matter, for people. */
  readonly detail?: string;
  /** `false`: it is shown, but the node can serve calls without it. Default true. */
  readonly isRequired?: boolean;
}

/** What `/readyz` answers. */
export interface ReadinessReport {
  readonly ready: boolean;
  readonly draining: boolean;
  readonly conditions: Readonly<
    Record<string, { readonly met: boolean; readonly required: boolean; readonly detail?: string }>
  >;
}

/** Whether this node wants traffic: named conditions, looked at when asked, and whether it is leaving. */
export class Readiness {
  readonly #probe: () => readonly ReadinessCondition[];
  #isDraining = false;

  /** @param probe Looks at every condition; must answer at once. Default: no conditions. */
  constructor(probe: () => readonly ReadinessCondition[] = () => []) {
    this.#probe = probe;
  }

  get isDraining(): boolean {
    return this.#isDraining;
  }

  /** From now on not ready, for good: load balancers look elsewhere while calls in flight finish. Idempotent. */
  startDraining(): void {
    this.#isDraining = true;
  }

  report(): ReadinessReport {
    const conditions = this.#probe();
    return {
      ready: !this.#isDraining && conditions.every(({ isMet, isRequired }) => isMet || isRequired === false),
      draining: this.#isDraining,
      conditions: Object.fromEntries(
        conditions.map(({ name, isMet, isRequired, detail }) => [
          name,
          { met: isMet, required: isRequired !== false, ...(detail === undefined ? {} : { detail }) },
        ]),
      ),
    };
  }
}
