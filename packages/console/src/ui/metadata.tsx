import { TextArea } from './field.tsx';

export type Metadata = Record<string, string | number | boolean | null>;

/** Metadata as text, one `name = value` per line. */
export function metadataText(metadata: Metadata): string {
  return Object.entries(metadata)
    .map(
      ([name, value]) => `${name} = ${typeof value === 'string' && !isLiteral(value) ? value : JSON.stringify(value)}`,
    )
    .join('\n');
}

/** Throws an Error that names the line. Numbers, true, false and null have their JSON meaning; quoted values are text. */
export function parseMetadata(text: string): Metadata {
  const lines = text.split('\n').flatMap((line) => line.trim() || []);
  return Object.fromEntries(
    lines.map((line) => {
      const [, name, value] = /^([^=]+?)\s*=\s*(.*)$/.exec(line) ?? [];
      if (!name || value === undefined) throw new Error(`"${line}" should be: name = value`);
      return [name, isLiteral(value) ? JSON.parse(value) : value];
    }),
  );
}

function isLiteral(text: string): boolean {
  try {
    const value = JSON.parse(text);
    return value === null || ['string', 'number', 'boolean'].includes(typeof value);
  } catch {
    return false;
  }
}

export function MetadataField({
  value,
  onChange,
  error,
}: {
  value: string;
  onChange: (text: string) => void;
  error?: string | undefined;
}) {
  return (
    <TextArea
      label="Metadata"
      hint="Your own values, one per line: customer = 17"
      mono
      rows={3}
      value={value}
      error={error}
      onChange={(event) => onChange(event.currentTarget.value)}
    />
  );
}
