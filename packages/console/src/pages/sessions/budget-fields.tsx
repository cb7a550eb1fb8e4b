import type { Budget } from '@signalbox/client';
import { TextField } from '../../ui/field.tsx';
import { numberIn } from '../../ui/number.ts';

const limits = [
  { field: 'maxTokens', label: 'Max tokens', hint: 'Input and output.' },
  { field: 'maxSteps', label: 'Max steps', hint: 'Model calls.' },
  { field: 'maxCostUsd', label: 'Max cost (USD)', hint: 'Counts models that have a price.' },
] as const;

/** A budget as typed; an empty text is no limit. */
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
  errorFor,
}: {
  value: BudgetTexts;
  onChange: (value: BudgetTexts) => void;
  /** The service's error for a field such as `budget.maxTokens`. */
  errorFor: (path: string) => string | undefined;
}) {
  return (
    <div className="columns small-fields">
      {limits.map(({ field, label, hint }) => (
        <TextField
          key={field}
          label={label}
          hint={hint}
          placeholder="No limit"
          inputMode="decimal"
          value={value[field]}
          error={errorFor(`budget.${field}`)}
          onChange={(event) => onChange({ ...value, [field]: event.currentTarget.value })}
        />
      ))}
    </div>
  );
}
