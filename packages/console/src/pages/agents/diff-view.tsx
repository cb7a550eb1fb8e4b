import { CodeDiff } from '../../ui/code-editor.tsx';
import type { Definition } from './definition.ts';
import { definitionTexts } from './diff.ts';

/** The changes between two definitions. Instructions are compared on their own: in the JSON they are one line. */
export function DefinitionDiff({
  before,
  after,
  sideBySide = false,
}: {
  before: Definition;
  after: Definition;
  sideBySide?: boolean;
}) {
  const [one, other] = [definitionTexts(before), definitionTexts(after)];
  const parts = [
    { title: 'Instructions', language: 'markdown' as const, before: one.instructions, after: other.instructions },
    { title: 'Everything else', language: 'json' as const, before: one.rest, after: other.rest },
  ].filter((part) => part.before !== part.after);
  if (parts.length === 0) return <p className="quiet">No differences.</p>;
  return parts.map(({ title, ...part }) => (
    <section className="stack tight" key={title}>
      <h3>{title}</h3>
      <CodeDiff label={title} sideBySide={sideBySide} {...part} />
    </section>
  ));
}
