// A part of a schema of an earlier draft, as draft 2020-12 says it. The parts in it are left as they are.
import { withLimits } from '../../schemas/draft-04.ts';
import { isObject, type SchemaObject } from '../../schemas/keywords.ts';

export function modern(node: SchemaObject): SchemaObject {
  const { items, additionalItems, dependencies } = node;
  const changed: Record<string, unknown> = { ...withLimits(node) };
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

function given(value: unknown): object {
  return isObject(value) ? value : {};
}
