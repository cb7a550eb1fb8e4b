// A schema with its references: which part each of them refers to. Only parts of the same document can be referred to.
import { DATA, isObject, isSchema, MAPS, type SchemaNode, type SchemaObject } from './keywords.ts';

interface Reference {
  readonly reference: string;
  readonly target: unknown;
}

export class SchemaDocument {
  readonly root: SchemaObject;
  /** The innermost part with an `$id` around each part that has a reference: the reference is relative to it. */
  readonly #bases = new Map<object, unknown>();
  /** What can be referred to other than by a path: names that the schema gives to its parts. */
  readonly #named = new Map<string, unknown>();

  constructor(root: SchemaObject) {
    this.root = root;
    this.#read(root, false, root);
  }

  /** The parts that a part refers to, which apply to the same value. Without parts that the document does not have. */
  targets(node: SchemaObject): SchemaNode[] {
    return this.#references(node).flatMap(({ target }) => (isSchema(target) ? [target] : []));
  }

  /** A reference that leads nowhere. */
  lostReference(): string | undefined {
    for (const node of this.#bases.keys()) {
      const lost = this.#references(node as SchemaObject).find(({ target }) => target === undefined);
      if (lost) return lost.reference;
    }
    return undefined;
  }

  get hasReferences(): boolean {
    return this.#bases.size > 0;
  }

  #references(node: SchemaObject): Reference[] {
    const base = this.#bases.get(node);
    return [node.$ref, node.$dynamicRef]
      .filter((one) => typeof one === 'string')
      .map((reference) => ({ reference, target: this.#named.get(reference) ?? partAt(base, reference) }));
  }

  #read(node: unknown, isMap: boolean, around: unknown): void {
    if (typeof node !== 'object' || node === null) return;
    const base = !isMap && '$id' in node ? node : around;
    for (const [name, value] of Object.entries(node)) {
      if (isMap) {
        this.#read(value, false, base);
      } else if (!DATA.has(name)) {
        this.#readKeyword(node, name, value, base);
        this.#read(value, MAPS.has(name), base);
      }
    }
  }

  #readKeyword(node: object, keyword: string, value: unknown, base: unknown): void {
    if (typeof value !== 'string') return;
    if (keyword === '$ref' || keyword === '$dynamicRef') this.#bases.set(node, base);
    if (keyword === '$id') this.#named.set(value, node);
    if (keyword === '$anchor' || keyword === '$dynamicAnchor') this.#named.set(`#${value}`, node);
  }
}

/** The part at a path such as `#/a/b`. Throws if the path is not correctly encoded. */
function partAt(root: unknown, reference: string): unknown {
  if (reference === '#') return root;
  if (!reference.startsWith('#/')) return undefined;
  let node = root;
  for (const step of decodeURIComponent(reference.slice(2)).split('/')) {
    const name = step.replaceAll('~1', '/').replaceAll('~0', '~');
    if (!(isObject(node) || Array.isArray(node)) || !Object.hasOwn(node, name)) return undefined;
    node = (node as Record<string, unknown>)[name];
  }
  return node;
}
