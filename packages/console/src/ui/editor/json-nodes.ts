// Where a value of a JSON text is in its syntax tree.
import { ensureSyntaxTree, syntaxTree } from '@codemirror/language';
import type { EditorState } from '@codemirror/state';
import type { SyntaxNode } from '@lezer/common';

export type JsonPath = readonly (string | number)[];

/** How long a text may be parsed at once before positions are approximate. */
const PARSE_MS = 200;
const VALUES = new Set(['Object', 'Array', 'String', 'Number', 'True', 'False', 'Null']);

export function isValue({ name }: SyntaxNode): boolean {
  return VALUES.has(name);
}

/** The name of a property, or the text of a string; as it is if it is incomplete. */
export function stringOf(state: EditorState, node: SyntaxNode): string {
  const text = state.sliceDoc(node.from, node.to);
  try {
    return String(JSON.parse(text));
  } catch {
    return text.replace(/^"|"$/g, '');
  }
}

export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children: SyntaxNode[] = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

export function propertiesOf(state: EditorState, object: SyntaxNode): { name: string; node: SyntaxNode }[] {
  return object.getChildren('Property').map((node) => {
    const name = node.getChild('PropertyName');
    return { name: name ? stringOf(state, name) : '', node };
  });
}

/** The value of a property, if it has one already. */
export function valueNodeOf(property: SyntaxNode): SyntaxNode | undefined {
  return childrenOf(property).find(isValue);
}

/** The name of the property, or the value of the element, at a path; of the closest container if there is none. */
export function rangeAt(state: EditorState, path: JsonPath): { from: number; to: number } {
  const tree = ensureSyntaxTree(state, state.doc.length, PARSE_MS) ?? syntaxTree(state);
  let value = childrenOf(tree.topNode).find(isValue);
  let shown = value && firstOf(value);
  for (const part of path) {
    if (!value) break;
    if (typeof part === 'number') {
      value = childrenOf(value).filter(isValue)[part];
      if (value) shown = firstOf(value);
    } else {
      const property: SyntaxNode | undefined = propertiesOf(state, value).find(({ name }) => name === part)?.node;
      value = property && valueNodeOf(property);
      const name = property?.getChild('PropertyName');
      if (name) shown = name;
    }
  }
  return shown ? { from: shown.from, to: shown.to } : { from: 0, to: Math.min(1, state.doc.length) };
}

/** A value on one line, or the bracket that opens it. */
function firstOf(node: SyntaxNode): { from: number; to: number } {
  return node.name === 'Object' || node.name === 'Array' ? { from: node.from, to: node.from + 1 } : node;
}

/** The parts of a path in the service's notation: `tools[0].request.url`. */
export function pathParts(path: string): JsonPath {
  return [...path.matchAll(/\[(\d+)\]|[^.[]+/g)].map(([part, index]) => (index === undefined ? part : Number(index)));
}
