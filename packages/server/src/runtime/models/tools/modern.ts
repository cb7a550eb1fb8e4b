// A part of a schema of an earlier draft, as draft 2020-12 says it. The parts in it are left as they are.
import { isObject, type SchemaObject } from '../../schemas/keywords.ts';

export function modern(node: SchemaObject): SchemaObject {
  const { exclusiveMinimum, exclusiveMaximum, items, additionalItems, dependencies } = node;
  const changed: Record<string, unknown> = { ...node };
  if (typeof exclusiveMinimum === 'boolean') limit(changed, 'minimum', 'exclusiveMinimum', exclusiveMinimum);
  if (typeof exclusiveMaximum === 'boolean') limit(changed, 'maximum', 'exclusiveMaximum', exclusiveMaximum);
  if (Array.isArray(items)) {
    delete changed.items;
    if (items.length > 0) changed.prefixItems = items;
    if (additionalItems !== undefined) changed.items = additionalItems;
  }
  delete changed.additionalItems;
  if (isObject(dependencies)) {
    const all = Object.entries(dependencies);
    const [required, schemas] = [all.filter(([, it]) => Array.isArray(it)), all.filter(([, it]) => !Array.isArray(it))];
    if (required.length > 0)
      changed.dependentRequired = { ...Object.fromEntries(required), ...given(node.dependentRequired) };
    if (schemas.length > 0)
      changed.dependentSchemas = { ...Object.fromEntries(schemas), ...given(node.dependentSchemas) };
  }
  delete changed.dependencies;
  return changed;
}

/** In draft-04 `exclusiveMinimum` says whether `minimum` itself is excluded. */
function limit(node: Record<string, unknown>, inclusive: string, exclusive: string, isExclusive: boolean): void {
  delete node[exclusive];
  if (!isExclusive || typeof node[inclusive] !== 'number') return;
  node[exclusive] = node[inclusive];
  delete node[inclusive];
}

function given(value: unknown): object {
  return isObject(value) ? value : {};
}
