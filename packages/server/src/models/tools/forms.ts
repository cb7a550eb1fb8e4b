// What the schema of a tool no longer says, because the alternatives of its root became one object: for the tool's description.
import { isSameJson } from '../../lib/json/same-json.ts';
import { isObject, type SchemaObject } from '../../schemas/keywords.ts';
import { listed } from './merge.ts';

const NOTE_MAX_CHARACTERS = 480;

/** `cases`: the alternatives. `not`, `values`: what the root refuses, and the only values that it allows. */
export function formsOf(
  cases: readonly SchemaObject[],
  { not, values }: { not?: unknown; values?: unknown },
  sentNames: ReadonlyMap<string, string>,
): string {
  const forms = [...new Set(cases.map((one) => formOf(one, cases, sentNames)))];
  const notes = [
    ...(forms.length > 1 ? [`The input has one of these forms: ${forms.join('; ')}.`] : []),
    ...(Array.isArray(values) ? [`The input is one of ${values.map((one) => JSON.stringify(one)).join(', ')}.`] : []),
    ...(not === undefined ? [] : [`The input does not match ${JSON.stringify(not)}.`]),
  ];
  const note = notes.join(' ');
  return note.length > NOTE_MAX_CHARACTERS ? `${note.slice(0, NOTE_MAX_CHARACTERS - 1).toWellFormed()}…` : note;
}

/** What this one requires and the others do not, with the values that it sets. */
function formOf(one: SchemaObject, cases: readonly SchemaObject[], sentNames: ReadonlyMap<string, string>): string {
  const propertiesOf = ({ properties }: SchemaObject) => (isObject(properties) ? properties : {});
  const requiredOf = ({ required }: SchemaObject) => (required as string[] | undefined) ?? [];
  const properties = propertiesOf(one);
  const isEverywhere = (name: string) =>
    cases.every((other) => isSameJson(propertiesOf(other)[name], properties[name]));
  const said = Object.keys(properties)
    .concat(requiredOf(one))
    .filter((name, at, all) => all.indexOf(name) === at)
    .flatMap((name) => {
      const isRequired = requiredOf(one).includes(name);
      if (isEverywhere(name) && (!isRequired || cases.every((other) => requiredOf(other).includes(name)))) return [];
      const values = isEverywhere(name) ? undefined : listed(properties[name]);
      const value = values ? ` = ${values.map((it) => JSON.stringify(it)).join(' or ')}` : '';
      return [`"${sentNames.get(name) ?? name}"${value}${isRequired ? '' : ' (optional)'}`];
    });
  return said.length > 0 ? said.join(', ') : 'none of these';
}
