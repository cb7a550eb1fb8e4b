// The languages of the editor. Highlighting sets classes; code-editor.css has their colors.
import { json } from '@codemirror/lang-json';
import { defineLanguageFacet, Language, syntaxHighlighting } from '@codemirror/language';
import type { Extension } from '@codemirror/state';
import { classHighlighter } from '@lezer/highlight';
import { GFM, parser } from '@lezer/markdown';

export type EditorLanguage = 'markdown' | 'json' | 'text';

// Without the package that also brings parsers of HTML, CSS and JavaScript, for blocks inside of Markdown.
const markdown = new Language(defineLanguageFacet(), parser.configure(GFM), [], 'markdown');

const languages: Record<EditorLanguage, Extension> = { markdown, json: json(), text: [] };

export function languageOf(language: EditorLanguage): Extension {
  return [languages[language], syntaxHighlighting(classHighlighter)];
}
