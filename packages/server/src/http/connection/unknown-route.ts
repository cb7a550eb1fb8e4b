// The refusal of a request that no route takes: what is probably wrong with its path or its method.
import { documentedRoutes, type Route } from '@signalbox/contract';
import { ApiError } from '../../lib/api-error.ts';

/** `path`: without the query. */
export function unknownRoute(method: string, path: string, prefix: string): ApiError {
  const methods = path.startsWith(`${prefix}/`) ? methodsOf(path.slice(prefix.length)) : [];
  if (methods.length === 0 && path.startsWith('/api/') && !path.startsWith(`${prefix}/`))
    return new ApiError('not_found', `There is no route ${method} ${path}: paths of the API begin with ${prefix}/.`);
  if (methods.length === 0) return new ApiError('not_found', `There is no route ${method} ${path}. See /docs.`);
  const detail = `There is no route ${method} ${path}: this path takes ${methods.join(', ')}.`;
  return new ApiError('method_not_allowed', detail, { allow: methods });
}

/** A path that ends with a slash names nothing: `/agents/` would be the agent with an empty id. */
export function requireNoSlashAtEnd(method: string, path: string, prefix: string): void {
  if (!path.startsWith(`${prefix}/`) || !path.endsWith('/')) return;
  throw new ApiError('not_found', `There is no route ${method} ${path}: leave out the slash at its end.`);
}

function methodsOf(path: string): string[] {
  const found = Object.values<Route>(documentedRoutes).filter((route) =>
    matches(route.path.split('/'), path.split('/')),
  );
  return [...new Set(found.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))].sort();
}

function matches(pattern: readonly string[], segments: readonly string[]): boolean {
  return pattern.length === segments.length && pattern.every((part, n) => part.startsWith('{') || part === segments[n]);
}
