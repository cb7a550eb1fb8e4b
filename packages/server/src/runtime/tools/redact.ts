// Takes the values of secrets out of a text that a server sent: each as it is, and in the encodings in which a server that
// gives a request back would show it. What a server does beyond that (hashes, reversals) nobody can undo.

export type Redact = (text: string) => string;

/** `values` by name. A value becomes `[secret NAME]`. */
export function createRedaction(values: Readonly<Record<string, string>>): Redact {
  const nameOf = new Map<string, string>();
  for (const [name, value] of Object.entries(values)) {
    // Servers take the white space off a header's value.
    for (const whole of [value, value.trim()]) {
      for (const form of formsOf(whole)) if (form !== '' && !nameOf.has(form)) nameOf.set(form, name);
    }
  }
  if (nameOf.size === 0) return (text) => text;
  // The longest first: a secret may be the beginning of another. In one pass, which does not look into its own marks.
  const forms = [...nameOf.keys()].sort((a, b) => b.length - a.length);
  const pattern = new RegExp(forms.map((form) => form.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')).join('|'), 'g');
  return (text) => text.replace(pattern, (form) => `[secret ${nameOf.get(form)}]`);
}

function formsOf(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  const ascii = json.replace(/[\u0080-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
  const uri = encodeURIComponent(value.toWellFormed());
  const strict = uri.replace(/[!'()*]/g, (mark) => `%${mark.charCodeAt(0).toString(16).toUpperCase()}`);
  const form = new URLSearchParams([['', value]]).toString().slice(1);
  return [
    ...[value, json, ascii].flatMap((text) => [text, text.replaceAll('/', '\\/')]),
    ...[uri, strict, form].flatMap((text) => [text, text.replace(/%../g, (code) => code.toLowerCase())]),
  ];
}
