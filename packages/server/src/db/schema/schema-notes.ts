// What the migrations contain but a database does not keep: the order in which tables and indexes are created, and their comments.
//
// Reads SQL by line, as the migrations are written: one column or statement a line, comments on lines of their own.

export interface SchemaNotes {
  /** The comment at the top of the first migration. */
  opening: string[];
  /** Names of tables and indexes, in the order of their creation. */
  order: string[];
  /** Lines of comment, with their `--`, by the name of a table or an index, or by `table.column`. */
  comments: Map<string, string[]>;
}

/** @param migrations their texts, in order */
export function readSchemaNotes(migrations: readonly string[]): SchemaNotes {
  const notes: SchemaNotes = { opening: [], order: [], comments: new Map() };
  let table = '';
  let comment: string[] = [];
  for (const line of migrations.flatMap((text) => `${text}\n`.split('\n').map((one) => one.trim()))) {
    if (line.startsWith('--')) {
      comment.push(line);
      continue;
    }
    const [, kind, created] = /^create (table|index|unique index) (\w+)/.exec(line) ?? [];
    const [, altered, added] = /^alter table (\w+)(?: add column (\w+))?/.exec(line) ?? [];
    const [, column] = /^(?:add column )?(\w+) /.exec(line) ?? [];
    if (created) notes.order.push(created);
    if (kind === 'table') table = created!;
    if (altered) table = altered;
    const about =
      created ?? (altered && [altered, added].filter(Boolean).join('.')) ?? (column && `${table}.${column}`);
    if (about && comment.length > 0) {
      notes.comments.set(about, [...(notes.comments.get(about) ?? []), ...comment]);
    } else if (notes.order.length === 0) {
      notes.opening.push(...comment);
    }
    comment = [];
  }
  return notes;
}
