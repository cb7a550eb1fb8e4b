import { useEffect, useRef, useState } from 'react';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Menu } from '../../ui/menu.tsx';
import { useToast } from '../../ui/toast.tsx';
import { policyWord } from './approval-field.tsx';
import { useDraft } from './draft.tsx';
import { DraftJson, textOf } from './fields.tsx';
import { isRecord } from './model.ts';
import { isWithin } from './path.ts';
import { isEffectful, newTools, ToolFields, type ToolType, toolTypes, toolTypeText } from './tool-fields.tsx';

// Tools have no ids. The list numbers them, so that a tool that moves keeps its focus and stays open.
let lastKey = 0;
const keysFor = (count: number) => Array.from({ length: count }, () => ++lastKey);

export function ToolsForm({ readOnly }: { readOnly: boolean }) {
  const draft = useDraft();
  const toast = useToast();
  const value = draft.get('tools') ?? [];
  const tools = Array.isArray(value) ? value : [];
  const [keys, setKeys] = useState(() => keysFor(tools.length));
  const [added, setAdded] = useState<number>();
  const list = useRef<HTMLOListElement>(null);
  const adding = useRef<HTMLDivElement>(null);

  // An edit of the JSON may have added or removed tools.
  const shownKeys =
    keys.length < tools.length ? [...keys, ...keysFor(tools.length - keys.length)] : keys.slice(0, tools.length);
  if (shownKeys.length !== keys.length) setKeys(shownKeys);

  useEffect(() => {
    if (added !== undefined) list.current?.querySelector<HTMLElement>(`[data-key="${added}"] input`)?.focus();
  }, [added]);

  if (!Array.isArray(value)) return <DraftJson path="tools" label="Tools" hint="A list." />;

  function add(type: ToolType) {
    const [key = 0] = keysFor(1);
    // Its fields show no errors until the user changes them.
    draft.set(`tools[${tools.length}]`, newTools[type], null);
    setKeys([...shownKeys, key]);
    setAdded(key);
  }
  function arrange(order: number[]) {
    draft.arrangeTools(order);
    setKeys(order.map((index) => shownKeys[index]!));
  }
  function move(from: number, to: number) {
    const order = tools.map((_, index) => index);
    order.splice(to, 0, ...order.splice(from, 1));
    arrange(order);
    toast(`${labelOf(tools[from])} moved to position ${to + 1} of ${tools.length}`);
  }
  function remove(index: number) {
    arrange(tools.flatMap((_, other) => (other === index ? [] : [other])));
    toast(`${labelOf(tools[index])} removed`);
    adding.current?.querySelector('button')?.focus();
  }

  return (
    <>
      {tools.length === 0 && <p className="quiet">No tools. The agent can only respond with text.</p>}
      <ol className="tools" ref={list}>
        {tools.map((tool, index) => (
          <li key={shownKeys[index]} data-key={shownKeys[index]}>
            <ToolItem
              index={index}
              tool={tool}
              isNew={shownKeys[index] === added}
              {...(!readOnly && {
                actions: [
                  { label: 'Move up', disabled: index === 0, onSelect: () => move(index, index - 1) },
                  { label: 'Move down', disabled: index === tools.length - 1, onSelect: () => move(index, index + 1) },
                  { label: 'Remove', danger: true, onSelect: () => remove(index) },
                ],
              })}
            />
          </li>
        ))}
      </ol>
      {!readOnly && (
        <div ref={adding} className="add-tools">
          {toolTypes.map((type) => (
            <div key={type}>
              <Button small onClick={() => add(type)}>
                Add {toolTypeText[type].label}
              </Button>
              <span className="quiet small">{toolTypeText[type].about}</span>
            </div>
          ))}
        </div>
      )}
    </>
  );
}

function ToolItem({
  index,
  tool,
  isNew,
  actions,
}: {
  index: number;
  tool: unknown;
  isNew: boolean;
  actions?: Parameters<typeof Menu>[0]['items'];
}) {
  const draft = useDraft();
  // There may be a hundred tools. A closed one renders its fields only if one of them has an error.
  const [open, setOpen] = useState(isNew);
  const path = `tools[${index}]`;
  const record = isRecord(tool) ? tool : {};
  const wrong = draft.shown.some((one) => isWithin(one.path, path));
  const type = toolTypeText[record.type as ToolType]?.label ?? textOf(record.type);
  return (
    <div className="tool">
      <details open={open} onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <strong className="mono">{nameOf(record) || '(no name yet)'}</strong> <Badge>{type}</Badge>{' '}
          <span className="quiet small">{policyWord(record.approval, usual(record))}</span>{' '}
          {wrong && <Badge tone="bad">problem</Badge>}
        </summary>
        {(open || wrong) && (
          <div className="stack">
            <ToolFields path={path} tool={record} />
          </div>
        )}
      </details>
      {actions && <Menu label={`Move or remove ${labelOf(tool)}`} items={actions} />}
    </div>
  );
}

function usual(tool: Record<string, unknown>): string {
  if (tool.type === 'web_search') return 'run by the provider';
  if (tool.type === 'mcp') return 'needs approval, except read-only tools';
  return isEffectful(tool) ? 'needs approval' : 'no approval';
}

function labelOf(tool: unknown): string {
  return (isRecord(tool) && nameOf(tool)) || 'the unnamed tool';
}

function nameOf(tool: Record<string, unknown>): string {
  return tool.type === 'web_search' ? tool.type : textOf(tool.name);
}
