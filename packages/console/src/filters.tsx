// Filters that several pages share.
import { useEnvironmentNames } from './environment-names.ts';
import { FilterSelect } from './ui/filter.tsx';

interface Chosen {
  value: string | undefined;
  /** Empty for all. */
  onChange: (value: string) => void;
}

export function EnvironmentFilter(chosen: Chosen) {
  const options = (useEnvironmentNames() ?? []).map((name) => ({ value: name, label: name }));
  return <FilterSelect label="Environment" options={options} {...chosen} />;
}
