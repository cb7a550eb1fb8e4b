// The table of operations by scope in docs/guides/keys.md.
import { permissions, type Route, scopeFacts, scopes } from '@signalbox/contract';
import { agentReachOf } from '../auth/agent-gate.ts';

const BEGIN = '<!-- operations by scope: written by npm run openapi -->\n';
const END = '<!-- end -->\n';

/** The text with the table between its marks. */
export function withScopeTable(text: string, routes: Record<string, Route>): string {
  const [before, rest] = text.split(BEGIN);
  const after = rest?.split(END)[1];
  if (before === undefined || after === undefined) throw new Error('The marks of the table are missing');
  return `${before}${BEGIN}\n${scopeTable(routes)}\n${END}${after}`;
}

function scopeTable(routes: Record<string, Route>): string {
  const rows = scopes.map((scope) => {
    const { permission, allows } = scopeFacts[scope];
    const including = permissions.slice(permissions.indexOf(permission)).map((name) => `\`${name}\``);
    const operations = Object.entries(routes)
      .filter(([, route]) => route.scope === scope && !route.byPerson)
      .map(([name, route]) => `\`${name}\`${isClosed(route) ? '\\*' : ''}${withAlso(route)}`);
    return `| \`${scope}\` | ${including.join(', ')} | ${allows} | ${operations.join(', ')} |`;
  });
  return ['| scope | in | allows to | operations |', '|---|---|---|---|', ...rows, ''].join('\n');
}

function withAlso({ alsoScope }: Route): string {
  const others = [alsoScope ?? []].flat();
  return others.length === 0 ? '' : ` (with ${others.map((scope) => `\`${scope}\``).join(' and ')})`;
}

/** To a key that is restricted to agents; such a key may use some operations on itself. */
function isClosed(route: Route): boolean {
  return agentReachOf(route) === 'closed';
}
