/** One operation of a turn in full, for people who debug it. */
import { Approval } from './approvals.ts';
import { Id, JsonSchema, Nullable, OneOf, type Static, Strict, Type } from './schema.ts';
import { MessagePart, messageRoles } from './sessions.ts';
import { SessionTurn, TurnOperation } from './timeline.ts';

export const OperationParams = Strict({ sessionId: Id('ses'), operationId: Id('op') });

const Header = Type.Object({ name: Type.String(), value: Type.String() }, { title: 'HttpHeader' });

export const SentRequest = Type.Object(
  {
    method: Type.String(),
    url: Type.String(),
    headers: Type.Array(Header),
    body: Nullable(Type.String()),
    secrets: Type.Array(
      Type.Object({ name: Type.String(), shownAs: Type.String({ examples: ['{{secrets.SHOP_KEY}}'] }) }),
      { description: 'The secrets that it contains: each value is replaced by `shownAs`, which occurs nowhere else.' },
    ),
  },
  { title: 'SentRequest' },
);
export type SentRequest = Static<typeof SentRequest>;

export const ReceivedResponse = Type.Object(
  {
    status: Type.Integer(),
    headers: Type.Array(Header, {
      description: 'Without secrets. Headers that usually carry a credential have the value `[removed]`.',
    }),
    bytes: Type.Integer({ description: 'Length of the body in bytes.' }),
    body: Nullable(Type.String(), {
      description: 'Body of a failed call: at most its first 16 KiB. null: the result of the call has it.',
    }),
  },
  { title: 'ReceivedResponse' },
);

export const Prompt = Type.Object(
  {
    model: Type.String({ description: '`provider/model` that it was for.' }),
    instructions: Type.String(),
    messages: Type.Array(
      Type.Object({ role: OneOf(messageRoles), content: Type.Array(MessagePart) }, { title: 'PromptMessage' }),
      { description: 'Oldest first, with the summary in place of the messages that it replaces.' },
    ),
    messagesLeftOut: Type.Integer({
      description: 'How many older messages the model got that are not in this response, because it would be too long.',
    }),
    tools: Type.Array(
      Type.Object(
        { name: Type.String(), description: Type.String(), inputSchema: JsonSchema },
        { title: 'PromptTool' },
      ),
    ),
    settings: Type.Unsafe<Record<string, unknown>>({ type: 'object', additionalProperties: true }),
    maxOutputTokens: Nullable(Type.Integer()),
    outputSchema: Nullable(JsonSchema),
  },
  { title: 'Prompt', description: 'What a model got.' },
);
export type Prompt = Static<typeof Prompt>;

export const OperationDetails = Type.Object(
  {
    ...TurnOperation.properties,
    sessionId: Id('ses'),
    turn: Type.Integer(),
    agentVersion: SessionTurn.properties.agentVersion,
    prompt: Nullable(Prompt, {
      description: 'Prompt of a model call. It is not stored, but built again by the code that built it.',
    }),
    response: Nullable(
      Type.Object(
        {
          content: Type.Array(MessagePart),
          reasoning: Nullable(Type.String(), { description: 'As far as the provider showed it.' }),
          stopReason: Nullable(OneOf(['endTurn', 'toolCalls', 'maxOutputTokens', 'refusal']), {
            description: 'null if it did not end.',
          }),
        },
        { title: 'ModelResponse' },
      ),
      { description: 'Response of a model call.' },
    ),
    input: Type.Unsafe<unknown>({ description: 'Input of a tool call, after the edits of its approvers; else null.' }),
    output: Type.Unsafe<unknown>({ description: 'Output of a tool call that succeeded; else null.' }),
    request: Nullable(SentRequest, {
      description: 'What was sent to the model’s provider, or to the server of an `http` or `mcp` tool.',
    }),
    received: Nullable(ReceivedResponse, { description: 'What the server of an `http` or `mcp` tool responded.' }),
    approval: Nullable(Approval, { description: 'Approval of a tool call that needed one; else null.' }),
    exact: Type.Boolean({
      description: 'Whether `prompt` and `request` are what was sent, to the byte. If not, `notes` say why.',
    }),
    notes: Type.Array(Type.String(), { description: 'What could not be built again, or is left out.' }),
  },
  { title: 'OperationDetails' },
);
export type OperationDetails = Static<typeof OperationDetails>;
