// What tests do with the code editor, as a user would.
import type { Locator } from 'playwright-core';

/** Replaces the text. `fill` would insert with styles of what it replaces, which the page's policy refuses. */
export async function write(editor: Locator, text: string): Promise<void> {
  const code = await whenLoaded(editor);
  await code.click();
  await code.press('ControlOrMeta+a');
  if (text === '') await code.press('Delete');
  else await code.page().keyboard.insertText(text);
}

/** The text: that of a long one is only in the page near what is visible. */
export async function textIn(editor: Locator): Promise<string> {
  return (await (await whenLoaded(editor)).locator('.cm-line').allTextContents()).join('\n');
}

/** Until it is loaded, a textarea is in its place. */
async function whenLoaded(editor: Locator): Promise<Locator> {
  const code = editor.and(editor.page().locator('.cm-content'));
  await code.waitFor();
  return code;
}
