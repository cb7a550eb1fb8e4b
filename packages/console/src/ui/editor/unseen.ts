// Invisible and bidirectional control characters are shown as code points: they can hide instructions from people.
import {
  Decoration,
  type DecorationSet,
  type EditorView,
  MatchDecorator,
  ViewPlugin,
  WidgetType,
} from '@codemirror/view';
import { codePoint, unseenCharacters } from '../../lib/text-format.ts';

class CodePoint extends WidgetType {
  readonly text: string;
  constructor(text: string) {
    super();
    this.text = text;
  }
  override eq(other: CodePoint): boolean {
    return other.text === this.text;
  }
  override toDOM(): HTMLElement {
    const element = document.createElement('code');
    element.className = 'unseen';
    element.title = 'An invisible character';
    element.textContent = this.text;
    return element;
  }
}

const decorator = new MatchDecorator({
  regexp: unseenCharacters(),
  decoration: ([character]) => Decoration.replace({ widget: new CodePoint(codePoint(character)) }),
});

export const showUnseen = ViewPlugin.define(
  (
    view: EditorView,
  ): { marks: DecorationSet; update: (update: Parameters<typeof decorator.updateDeco>[0]) => void } => ({
    marks: decorator.createDeco(view),
    update(update) {
      this.marks = decorator.updateDeco(update, this.marks);
    },
  }),
  { decorations: ({ marks }) => marks },
);
