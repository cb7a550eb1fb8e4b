/** Drafts: definitions that sessions run without being saved, and mocks of their tools. */
import { CreateAgent } from './agents.ts';
import { Json, OneOf, type Static, Strict, Type } from './schema.ts';

/** What a call of a tool gets instead of being run. */
export const ToolMock = Strict(
  {
    results: Type.Array(
      Strict(
        {
          output: Type.Optional(Json),
          error: Type.Optional(Type.String({ minLength: 1, maxLength: 100_000 })),
        },
        { title: 'MockedResult', description: 'Exactly one of `output` and `error`.' },
      ),
      {
        minItems: 1,
        maxItems: 100,
        description:
          'The first call of the tool in the session gets the first result, the second call the second, and so on; all calls after the last result get the last one.',
      },
    ),
    approval: Type.Optional(
      OneOf(['keep', 'skip'], {
        default: 'skip',
        description: '`keep`: mocked calls need an approval if calls of the tool do. `skip`: they need none.',
      }),
    ),
  },
  { title: 'ToolMock' },
);
export type ToolMock = Static<typeof ToolMock>;

/** A definition that a session runs without it being saved. */
export const Draft = Strict(
  {
    definition: Type.Unsafe<Static<typeof CreateAgent>>({
      ...CreateAgent,
      description: 'As for creating an agent. It is checked in the same way, and does not become a version.',
    }),
    mocks: Type.Optional(
      Type.Unsafe<Record<string, ToolMock>>({
        type: 'object',
        maxProperties: 200,
        propertyNames: { minLength: 1, maxLength: 300 },
        additionalProperties: ToolMock,
        description:
          'By the name of a tool of the definition: what its calls get instead of being run. For an `mcp` tool, the name of the server mocks all of its tools, and `server__tool` one of them; the tools are still listed by the server.',
      }),
    ),
  },
  { title: 'Draft' },
);
export type Draft = Static<typeof Draft>;
