// Separate from validation, because the list of agents needs no schemas.
import type { Model } from '@signalbox/contract';

/** A model as an object, including one in the short form. */
export function modelOf(value: unknown): Partial<Model> & Record<string, unknown> {
  if (isRecord(value)) return value;
  if (typeof value !== 'string') return {};
  const [provider, ...name] = value.split('/');
  return { provider: provider as Model['provider'], ...(name.length > 0 && { model: name.join('/') }) };
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** `provider/model`, the short form of a model. */
export function modelName(value: unknown): string {
  const { provider, model, queue } = modelOf(value);
  return `${provider}/${model ?? queue ?? ''}`;
}
