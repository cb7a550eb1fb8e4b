// Colors of code. Loaded when the first block of code with a language is shown.
import bash from 'highlight.js/lib/languages/bash';
import css from 'highlight.js/lib/languages/css';
import diff from 'highlight.js/lib/languages/diff';
import go from 'highlight.js/lib/languages/go';
import java from 'highlight.js/lib/languages/java';
import json from 'highlight.js/lib/languages/json';
import python from 'highlight.js/lib/languages/python';
import rust from 'highlight.js/lib/languages/rust';
import sql from 'highlight.js/lib/languages/sql';
import typescript from 'highlight.js/lib/languages/typescript';
import xml from 'highlight.js/lib/languages/xml';
import yaml from 'highlight.js/lib/languages/yaml';
import { createLowlight } from 'lowlight';

const lowlight = createLowlight({ bash, css, diff, go, java, json, python, rust, sql, typescript, xml, yaml });
lowlight.registerAlias({ bash: ['console', 'shell', 'zsh'], typescript: ['javascript', 'js', 'jsx', 'mjs'] });

export interface Colored {
  text: string;
  /** The class in the style sheet: `hljs-keyword`. */
  kind: string | undefined;
}

/** The code in pieces with their kinds; undefined for a language that is not known. */
export function highlight(language: string, code: string): Colored[] | undefined {
  if (!lowlight.registered(language)) return undefined;
  const pieces: Colored[] = [];
  collect(lowlight.highlight(language, code).children, undefined, pieces);
  return pieces;
}

type Nodes = ReturnType<typeof lowlight.highlight>['children'];

function collect(nodes: Nodes, kind: string | undefined, pieces: Colored[]): void {
  for (const node of nodes) {
    if (node.type === 'text') pieces.push({ text: node.value, kind });
    else if (node.type === 'element') {
      const [own] = [node.properties.className].flat();
      collect(node.children, typeof own === 'string' ? own : kind, pieces);
    }
  }
}
