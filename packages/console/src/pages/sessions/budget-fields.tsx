import type { Budget } from '@signalbox/client';
import { TextField } from '../../ui/field.tsx';
import { numberIn } from '../../ui/number.ts';

const limits = [
  { field: 'maxTokens', label: 'At most: tokens', hint: 'Input and output together.' },
  { field: 'maxSteps', label: 'At most: steps', hint: 'Calls of the model.' },
  { field: 'maxCostUsd', label: 'At most: US dollars', hint: 'Needs a price for the model.' },
] as const;

/** A budget as people type it; empty: no limit. */
export type BudgetTexts = Record<(typeof limits)[number]['field'], string>;

export function budgetTexts(budget: Budget | null): BudgetTexts {
  return {
    maxTokens: String(budget?.maxTokens ?? ''),
    maxSteps: String(budget?.maxSteps ?? ''),
    maxCostUsd: String(budget?.maxCostUsd ?? ''),
  };
}

/** null: no limit at all. */
export function parseBudget(texts: BudgetTexts): Budget | null {
  const given = Object.entries(texts)
    .map(([field, text]) => [field, numberIn(text)])
    .filter(([, limit]) => limit !== undefined);
  return given.length > 0 ? Object.fromEntries(given) : null;
}

export function BudgetFields({
  value,
  onChange,
  said,
}: {
  value: BudgetTexts;
  onChange: (value: BudgetTexts) => void;
  /** What the service said of a field: `budget.maxTokens`. */
  said: (path: string) => string | undefined;
}) {
  return (
    <div className="columns">
      {limits.map(({ field, label, hint }) => (
        <TextField
          key={field}
          label={label}
          hint={`${hint} Empty: no limit.`}
          inputMode="decimal"
          value={value[field]}
          error={said(`budget.${field}`)}
          onChange={(event) => onChange({ ...value, [field]: event.currentTarget.value })}
        />
      ))}
    </div>
  );
}
