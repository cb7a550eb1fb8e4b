import { Braces } from 'lucide-react';
import { useContext, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { CodeEditor } from '../../ui/code-editor.tsx';
import { Json } from '../../ui/copy.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { readJson, useDraft } from './draft.tsx';
import { FormContext } from './fields.tsx';
import { schemaOfExample } from './schema-of-example.ts';

/** Writes the JSON Schema at a path from an example of the object that it describes. */
export function SchemaFromExample({ path, label }: { path: string; label: string }) {
  const draft = useDraft();
  const { isReadOnly } = useContext(FormContext);
  const [isOpen, setOpen] = useState(false);
  const [text, setText] = useState('');
  if (isReadOnly) return null;
  const read = readJson(text, true);
  const schema = 'value' in read ? schemaOfExample(read.value) : undefined;
  return (
    <div>
      <Button small onClick={() => setOpen(true)}>
        <Braces aria-hidden="true" />
        Write from an example
      </Button>
      {isOpen && (
        <Dialog title={`Write the ${label} from an example`} wide guarded onClose={() => setOpen(false)}>
          <div className="stack">
            <CodeEditor
              label="Example"
              language="json"
              lines={6}
              mostLines={14}
              value={text}
              placeholder={'{ "orderId": "1042", "cents": 4250 }'}
              hint="A JSON object. Each of its fields becomes required."
              error={text.trim() !== '' && 'message' in read ? read.message : undefined}
              onChange={setText}
            />
            {schema && (
              <section className="stack tight" aria-label="Schema">
                <h3>Schema</h3>
                <Json value={schema} />
              </section>
            )}
            <div className="foot">
              <Button onClick={() => setOpen(false)}>Cancel</Button>
              <Button
                look="primary"
                disabled={!schema}
                onClick={() => {
                  draft.set(path, schema);
                  setOpen(false);
                }}
              >
                Use schema
              </Button>
            </div>
          </div>
        </Dialog>
      )}
    </div>
  );
}
