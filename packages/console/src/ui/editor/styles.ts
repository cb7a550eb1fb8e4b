// The content security policy allows no inline styles. CodeMirror writes its own into a <style> element of a document, but into an
// adopted style sheet of a shadow root. The set of such a root serves the document as well.
import { StyleModule } from 'style-mod';

const shadow = { ownerDocument: document, adoptedStyleSheets: [] } as unknown as ShadowRoot;
StyleModule.mount(shadow, []);
for (const key of Object.getOwnPropertySymbols(shadow)) {
  Object.assign(document, { [key]: (shadow as unknown as Record<symbol, unknown>)[key] });
}
