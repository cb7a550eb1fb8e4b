// The text of an operation in the OpenAPI document.
import { permissionOf, permissions, type Route, scopesOf } from '@signalbox/contract';

/** With the permission in words, for readers that do not show extensions. */
export function descriptionOf(route: Route): string {
  const permission = permissionOf(route);
  const having = `the permission${permission === 'admin' ? '' : 's'} ${permissions
    .slice(permissions.indexOf(permission))
    .map((name) => `\`${name}\``)
    .join(', ')
    .replace(/, ([^,]*)$/, ' and $1')}`;
  const access = [
    route.byOperator
      ? 'Only for the operator of the installation, with the token of `SIGNALBOX_OPERATOR_TOKEN`.'
      : route.byPerson
        ? `Only for a signed-in user with the permission \`${permission}\`.`
        : route.scope === 'any'
          ? 'Every key can call it, whatever its permission or scopes.'
          : `Needs the scope${route.alsoScope ? 's' : ''} ${scopesOf(route)
              .map((scope) => `\`${scope}\``)
              .join(' and ')}, which ${having} include${permission === 'admin' ? 's' : ''}.`,
    ...(route.token
      ? [
          `A session token needs the scope \`${route.token}\`${route.tokenFields ? `, and can send ${route.tokenFields.map((field) => `\`${field}\``).join(', ')}` : ''}.`,
        ]
      : []),
    ...(route.alsoAtRoot ? [`Also available at \`${route.path}\`.`] : []),
  ].join(' ');
  const stream = route.canStream
    ? 'With `Accept: text/event-stream` the response is a stream: first `event: session`, whose `data` is the JSON response, then `session.chunks` events as in [Stream a session](#tag/Sessions/operation/streamSession), until the session is idle or has ended. If the connection is lost, continue with that operation after the last `id`, or repeat the request with its `Idempotency-Key`. This also needs `sessions:read`.'
    : undefined;
  return [route.description, stream, access].filter((part) => part !== undefined).join('\n\n');
}
