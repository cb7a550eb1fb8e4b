// Checks every statement that the tests ran: `node test/sql-lint.ts FILE`, where each line is a JSON string, as the tests record it,
// or, for a statement that db/shards.ts sends across organizations, an object of the whole and the confined text. With `--some`, for
// a run of some tests, a template that they did not run is not reported.
//
// Statements are composed at run time, so the sources do not show them whole. Instead, some test must run each template in the
// sources, and the statements that ran are checked.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { loadModule } from 'libpg-query';
import { exceptions, neverRun } from './sql-exceptions.ts';
import { type Across, problemsOf, schemaOf } from './sql-rules.ts';
import { cameFrom, holds, sqlTemplates } from './sql-templates.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const [file = '', some] = process.argv.slice(2);
const isWhole = some !== '--some';
const lines = [...new Set(readFileSync(file, 'utf8').split('\n').filter(Boolean))].map(
  (line) => JSON.parse(line) as string | { whole: string; confined: string },
);
const run = lines.filter((line) => typeof line === 'string');
const ways = new Map<string, Across>();
for (const line of lines) {
  if (typeof line === 'string') continue;
  ways.set(line.whole, 'everywhere').set(line.confined, 'confined');
  run.push(line.confined);
}
const templates = sqlTemplates(root);
await loadModule();
const schema = schemaOf(readFileSync(`${root}/packages/server/schema.sql`, 'utf8'));

const complaints: string[] = [];
const ours = new Map<string, string>();
for (const template of templates) {
  const matching = run.filter((statement) => cameFrom(statement, template));
  const excused = neverRun.some(({ like }) => like.test(template.pieces.join('…')));
  const isRun = matching.length > 0 || run.some((statement) => holds(statement, template));
  if (isWhole && !isRun && !excused) complaints.push(`${template.place}: no test runs this`);
  if (matching.length > 0 && excused) complaints.push(`${template.place}: is run, and needs no excuse`);
  if (template.isStatement) for (const statement of matching) ours.set(statement, template.place);
}
for (const [statement, place] of ours) {
  for (const problem of problemsOf(statement, schema, exceptions, ways.get(statement))) {
    complaints.push(`${place}: ${problem}\n    ${statement.replaceAll(/\s+/g, ' ').trim()}`);
  }
}
for (const { like, reason } of isWhole ? exceptions : []) {
  const used = [...ours.keys()].some((statement) => like.test(statement.replaceAll(/\s+/g, ' ').trim()));
  if (!used) complaints.push(`test/sql-exceptions.ts: no statement is excepted because ${reason}`);
}

for (const complaint of complaints) console.error(complaint);
if (isWhole || complaints.length > 0) {
  console.log(`${ours.size} statements of ${templates.length} templates: ${complaints.length || 'no'} complaints.`);
}
process.exitCode = complaints.length > 0 ? 1 : 0;
