import type { Event } from '@signalbox/client';
import type { LinkComponentProps } from '@tanstack/react-router';

/** The page about what happened: its approval, session, schedule or agent, or else the event itself. */
export function eventLink(organizationId: string, event: Event): LinkComponentProps {
  const { type, resource, sessionId, eventId } = event;
  const isGone = type.endsWith('.deleted');
  if (resource.type === 'approval') {
    return { to: '/$organizationId/approvals/$operationId', params: { organizationId, operationId: resource.id } };
  }
  if (sessionId !== null && !isGone) {
    return { to: '/$organizationId/sessions/$sessionId', params: { organizationId, sessionId } };
  }
  if (resource.type === 'schedule' && !isGone) {
    return { to: '/$organizationId/schedules/$scheduleId', params: { organizationId, scheduleId: resource.id } };
  }
  if (resource.type === 'agent' && resource.id.startsWith('agt_')) {
    return { to: '/$organizationId/agents/$agentId', params: { organizationId, agentId: resource.id } };
  }
  return { to: '/$organizationId/events', params: { organizationId }, search: { event: eventId } };
}
