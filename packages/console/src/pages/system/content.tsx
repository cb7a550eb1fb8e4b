import { CodeDiff, CodeEditor } from '../../ui/code-editor.tsx';
import { Markdown } from '../../ui/markdown/markdown.tsx';
import { MetadataField } from '../../ui/metadata.tsx';
import { SplitPanes } from '../../ui/split-panes.tsx';
import { LongText, PlainText } from '../../ui/text.tsx';
import { ExactTime, Time } from '../../ui/time.tsx';
import { Specimen } from './system.tsx';

const markdown = `### Order 1042

The lamp arrived **damaged**, so you can have *either*:

1. a refund of \`€42.50\`
2. a replacement

| Item | Price | Status |
|---|---:|---|
| Lamp | €42.50 | damaged |
| Cable | €7.00 | fine |

\`\`\`json
{ "order": "1042", "amount": 42.5 }
\`\`\`

> Refunds take 3–5 days. See [the policy](https://example.com/policy).

- [x] Look up the order
- [ ] Send the refund

![A photo of the lamp](https://example.com/lamp.png) <b>HTML is text</b>
`;

const definition = `{
  "name": "refund_order",
  "approval": "always",
  "inputSchema": { "type": "object" }
}`;

const schema = { type: 'object', properties: { name: { type: 'string' }, approval: { enum: ['never', 'always'] } } };

/** Long ago, so that it is shown as a date. */
const at = '2024-02-29T11:59:00Z';

const none = () => {};

export function Content() {
  return (
    <>
      <Specimen name="Markdown">
        <Markdown text={markdown} />
      </Specimen>
      <Specimen name="Texts">
        <dl className="facts">
          <dt>Time</dt>
          <dd>
            <Time at={at} />
          </dd>
          <dt>Exact time</dt>
          <dd>
            <ExactTime at={at} />
          </dd>
          <dt>Never</dt>
          <dd>
            <Time at={null} />
          </dd>
          <dt>Untrusted text</dt>
          <dd>
            <PlainText text={'Two lines,\nwith an invisible\u200b character'} />
          </dd>
          <dt>Long text</dt>
          <dd>
            <LongText text={'A sentence that repeats. '.repeat(40)} />
          </dd>
        </dl>
      </Specimen>
      <Specimen name="Editor">
        <div className="columns">
          <CodeEditor label="Definition" language="json" schema={schema} value={definition} onChange={none} />
          <CodeEditor
            label="With a problem"
            language="json"
            schema={schema}
            value={definition.replace('always', 'sometimes')}
            onChange={none}
          />
          <CodeEditor label="Instructions" language="markdown" value="You are the refund desk." onChange={none} />
          <MetadataField value="customer = 17" onChange={none} />
        </div>
        <CodeDiff
          label="definition"
          language="json"
          before={definition}
          after={definition.replace('"always"', '"never"')}
        />
      </Specimen>
      <Specimen name="Panes">
        <SplitPanes name="system" label="Width of the conversation" second={<div className="card">Trace</div>}>
          <div className="card">Conversation</div>
        </SplitPanes>
      </Specimen>
    </>
  );
}
