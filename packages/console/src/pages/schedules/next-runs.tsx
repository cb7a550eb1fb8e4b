// The next times of a cron expression, as the service computes them.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import { useOrganization } from '../../data/organization.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';

const PAUSE_MS = 250;

/** Nothing for an expression that is not valid: saving it says what is wrong. */
export function NextRuns({ cron, timezone }: { cron: string; timezone: string }) {
  const { client, organizationId } = useOrganization();
  const [asked, setAsked] = useState({ cron, timezone });
  // Not for each letter.
  useEffect(() => {
    const timer = setTimeout(() => setAsked({ cron, timezone }), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [cron, timezone]);
  const { data } = useQuery({
    queryKey: [organizationId, 'schedules', 'preview', asked],
    queryFn: ({ signal }) =>
      client.schedules.preview({ cron: asked.cron, ...(asked.timezone && { timezone: asked.timezone }) }, { signal }),
    enabled: asked.cron.trim() !== '',
    retry: false,
  });
  if (!data || data.length === 0) return null;
  return (
    <ol className="next-runs" aria-label="Next runs">
      {data.map((at) => (
        <li key={at}>
          <ExactTime at={at} />{' '}
          <span className="quiet small">
            <Time at={at} />
          </span>
        </li>
      ))}
    </ol>
  );
}
