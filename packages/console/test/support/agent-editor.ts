// The editor of an agent's definition in a browser.
import type { Page } from 'playwright-core';

export const json = (page: Page) => page.getByLabel('Definition as JSON');
export const name = (page: Page) => page.getByLabel('Name', { exact: true }).first();
/** Opens a part of the form that is closed at first. */
export const unfold = (page: Page, title: string) => page.locator('summary').filter({ hasText: title }).click();
export const save = (page: Page) => page.getByRole('button', { name: 'Save', exact: true });
