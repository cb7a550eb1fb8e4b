// The page of an id that was pasted.

const pattern = /^([a-z]+)_[0-7][0-9a-hjkmnp-tv-z]{25}$/;

/** What an id is of, and its page below the organization's; undefined if it is not an id that has a page. */
export function pageOfId(text: string): { what: string; to: string; search?: Record<string, string> } | undefined {
  const id = text.trim();
  const [, prefix] = pattern.exec(id) ?? [];
  switch (prefix) {
    case 'ses':
      return { what: 'Session', to: `/sessions/${id}` };
    case 'agt':
      return { what: 'Agent', to: `/agents/${id}` };
    case 'op':
      return { what: 'Approval', to: `/approvals/${id}` };
    case 'call':
      // A tool call and its operation have one id, with two prefixes.
      return { what: 'Tool call', to: `/approvals/op_${id.slice('call_'.length)}` };
    case 'sch':
      return { what: 'Schedule', to: `/schedules/${id}` };
    case 'evt':
      return { what: 'Event', to: '/events', search: { event: id } };
    case 'key':
    case 'usr':
      return {
        what: prefix === 'key' ? 'What this API key did' : 'What this person did',
        to: '/events',
        search: { actorId: id },
      };
    case undefined:
    case 'req':
    case 'msg':
    case 'org':
      return undefined;
    default:
      return { what: 'Events about this', to: '/events', search: { resourceId: id } };
  }
}

/** `customer=17`: sessions with this metadata. */
export function metadataIn(text: string): Record<string, string> | undefined {
  const [, name, value] = /^([\w.-]{1,64})=(.{1,512})$/.exec(text.trim()) ?? [];
  return name !== undefined && value !== undefined ? { [name]: value } : undefined;
}
