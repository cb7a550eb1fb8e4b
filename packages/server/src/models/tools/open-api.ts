// A schema in the words of OpenAPI 3.0, as far as Gemini knows them: null is not a type, only texts can be listed, and nothing stands
// beside alternatives. What has no word is said in the description, or left out.
import { ABOUT, isObject, type SchemaObject } from '../../schemas/keywords.ts';
import { typesOf } from './merge.ts';

const KEYWORDS = new Set(
  `type format title description nullable enum items minItems maxItems properties required minProperties maxProperties minLength
  maxLength pattern anyOf propertyOrdering default minimum maximum`.split(/\s+/),
);
const FORMATS: Readonly<Record<string, readonly string[]>> = {
  string: ['enum', 'date-time'],
  integer: ['int32', 'int64'],
  number: ['float', 'double'],
};

/** Each part of the schema has a type, or is a list of alternatives. */
export function openApi(schema: SchemaObject): SchemaObject {
  const alternatives = alternativesOf(schema);
  const named = alternatives.filter(({ type }) => type !== 'null');
  const nullable = named.length < alternatives.length && { nullable: true };
  const built = named.map((one) => ({ ...ofOneType(one), ...nullable }));
  if (built.length === 0) return { type: 'string', nullable: true };
  return built.length === 1 ? built[0]! : { anyOf: built };
}

/** Each of one type. */
function alternativesOf(schema: SchemaObject): SchemaObject[] {
  const { anyOf, description } = schema;
  if (Array.isArray(anyOf)) {
    const about = description === undefined ? {} : { description };
    return anyOf.flatMap((one: SchemaObject) => alternativesOf({ ...about, ...one }));
  }
  const types = typesOf(schema) ?? ['string'];
  if (types.length === 1) return [schema];
  return types.map((type) => {
    const isOfType = (keyword: string) =>
      ABOUT[keyword] === undefined || ABOUT[keyword] === (type === 'integer' ? 'number' : type);
    return { ...Object.fromEntries(Object.entries(schema).filter(([keyword]) => isOfType(keyword))), type };
  });
}

function ofOneType(schema: SchemaObject): SchemaObject {
  const { type, enum: values, format, properties, items } = schema;
  const listed = (values as unknown[] | undefined)?.filter((value) => value !== null);
  const isSayable = type === 'string' && listed?.every((value) => typeof value === 'string' && value !== '');
  const said = listed && !isSayable ? `One of ${listed.map((value) => JSON.stringify(value)).join(', ')}.` : undefined;
  const description = [schema.description, said].filter((text) => text !== undefined).join(' ');
  const known = Object.entries(schema).filter(([keyword]) => KEYWORDS.has(keyword) && keyword !== 'enum');
  const { format: _, ...rest } = Object.fromEntries(known);
  return {
    ...rest,
    ...(FORMATS[String(type)]?.includes(String(format)) && { format }),
    ...(description !== '' && { description }),
    ...(isSayable && { enum: listed }),
    ...(isObject(properties) && {
      properties: Object.fromEntries(
        Object.entries(properties).map(([name, part]) => [name, openApi(part as SchemaObject)]),
      ),
    }),
    ...(isObject(items) && { items: openApi(items) }),
  };
}
