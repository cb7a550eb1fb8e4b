// The limits of a key: in its form, and with what is used of them in the list.
import type { ApiKey } from '@signalbox/client';
import { Badge } from '../../ui/badge.tsx';
import { Dollars } from '../../ui/dollars.tsx';
import { TextField } from '../../ui/field.tsx';
import { numberIn } from '../../ui/number.ts';
import { number } from '../sessions/session-text.ts';

/** As typed; an empty text is no limit. */
export interface LimitTexts {
  requestsPerMinute: string;
  maxCostUsdPerDay: string;
}

export function limitTexts(key: Pick<ApiKey, keyof LimitTexts> | undefined): LimitTexts {
  return {
    requestsPerMinute: String(key?.requestsPerMinute ?? ''),
    maxCostUsdPerDay: String(key?.maxCostUsdPerDay ?? ''),
  };
}

export function parseLimits(texts: LimitTexts): Pick<ApiKey, keyof LimitTexts> {
  return {
    requestsPerMinute: numberIn(texts.requestsPerMinute) ?? null,
    maxCostUsdPerDay: numberIn(texts.maxCostUsdPerDay) ?? null,
  };
}

export function LimitFields({
  value,
  onChange,
  errorFor,
}: {
  value: LimitTexts;
  onChange: (value: LimitTexts) => void;
  /** The service's error for a field. */
  errorFor: (path: string) => string | undefined;
}) {
  return (
    <div className="columns">
      <TextField
        label="Max requests per minute"
        hint="Leave empty for no limit."
        inputMode="numeric"
        value={value.requestsPerMinute}
        error={errorFor('requestsPerMinute')}
        onChange={(event) => onChange({ ...value, requestsPerMinute: event.currentTarget.value })}
      />
      <TextField
        label="Max cost per day (USD)"
        hint="Of its sessions, in a UTC day. Then their turns end. Leave empty for no limit."
        inputMode="decimal"
        value={value.maxCostUsdPerDay}
        error={errorFor('maxCostUsdPerDay')}
        onChange={(event) => onChange({ ...value, maxCostUsdPerDay: event.currentTarget.value })}
      />
    </div>
  );
}

/** What the sessions of the key cost today, and its limits. */
export function UsedToday({ apiKey: { costUsdToday, maxCostUsdPerDay, requestsPerMinute } }: { apiKey: ApiKey }) {
  const isSpent = maxCostUsdPerDay !== null && costUsdToday >= maxCostUsdPerDay;
  return (
    <div className="stack tight">
      <span>
        <Dollars usd={costUsdToday} />
        {maxCostUsdPerDay !== null && (
          <>
            {' '}
            of <Dollars usd={maxCostUsdPerDay} />
          </>
        )}{' '}
        {isSpent && <Badge tone="bad">used up</Badge>}
      </span>
      {requestsPerMinute !== null && (
        <span className="small quiet" title={`At most ${number(requestsPerMinute)} requests a minute`}>
          max. {number(requestsPerMinute)}/min
        </span>
      )}
    </div>
  );
}
