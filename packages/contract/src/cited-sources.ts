/** What a model's text cites, and the mark of what a provider ran itself. */
import { type Static, Type } from './schema.ts';

export const Source = Type.Object(
  {
    url: Type.Optional(
      Type.String({ description: 'Its address: `http` or `https`. Left out for a document without one.' }),
    ),
    title: Type.Optional(Type.String()),
    citedText: Type.Optional(
      Type.String({ description: 'The words that the model cites, if the provider names them.' }),
    ),
  },
  { title: 'Source' },
);
export type Source = Static<typeof Source>;

/** On a text, and on the chunk that ends it. */
export const Sources = Type.Optional(
  Type.Array(Source, {
    description:
      'What the text cites, each source once; if the provider names no citations, the sources that it has read. Left out if there are none.',
  }),
);

/** On a call and on its result. */
export const ByProvider = Type.Optional(
  Type.Literal('provider', {
    description:
      "`provider`: the model's provider ran the call itself, such as a web search. It has its result already: never run it.",
  }),
);
