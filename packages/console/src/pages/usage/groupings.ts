import type { UsageGroup, UsageReport } from '@signalbox/client';
import { useAgentName } from '../../data/agent-names.ts';

export const groupings: Record<UsageReport['groupBy'], string> = {
  day: 'Day',
  model: 'Model',
  agent: 'Agent',
  environment: 'Environment',
  endUser: 'End user',
  apiKey: 'API key',
};

/** `Cost by end user` */
export function byGroup(what: string, groupBy: UsageReport['groupBy']): string {
  return `${what} by ${groupBy === 'apiKey' ? groupings.apiKey : groupings[groupBy].toLowerCase()}`;
}

/** The groups whose name or id contains the text. */
export function foundIn(data: readonly UsageGroup[], q: string, nameOf: (group: string) => string): UsageGroup[] {
  const words = q.toLocaleLowerCase();
  return data.filter(({ group }) => [group, nameOf(group)].some((text) => text.toLocaleLowerCase().includes(words)));
}

/** What a group of a report is called. The report by API key has the names of keys. */
export function useGroupName(
  groupBy: UsageReport['groupBy'],
  report: UsageReport | undefined,
): (group: string) => string {
  const agentName = useAgentName();
  const none: Partial<Record<UsageReport['groupBy'], string>> = {
    agent: 'Drafts',
    endUser: 'No end user',
    apiKey: 'No key: people in the console',
  };
  return (group) => {
    if (group === '') return none[groupBy] ?? '';
    if (groupBy === 'agent') return agentName(group);
    return report?.data.find((one) => one.group === group)?.name ?? group;
  };
}
