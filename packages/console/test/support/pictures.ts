// Pictures of parts of a page, compared with stored ones (`npm run pictures` writes them).
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import pixelmatch from 'pixelmatch';
import { PNG } from 'pngjs';

const directory = fileURLToPath(new URL('../pictures/', import.meta.url));
const differences = fileURLToPath(new URL('../pictures/.different/', import.meta.url));
export const isWriting = process.env.SIGNALBOX_WRITE_PICTURES !== undefined;

// Edges of letters and curves are drawn differently from machine to machine: pixelmatch recognizes them, and the rest may differ a
// little. A part that moved by a step of the grid, or has another color, differs by more than that.
const COLOR_TOLERANCE = 0.15;
const MAX_DIFFERENT = 0.01;

/** Writes the picture, or returns how it differs from the stored one. Undefined if it does not. */
export function comparePicture(name: string, bytes: Buffer): string | undefined {
  const file = `${directory}${name}.png`;
  if (isWriting) {
    mkdirSync(directory, { recursive: true });
    writeFileSync(file, bytes);
    return undefined;
  }
  if (!existsSync(file)) return `${name}: there is no picture of it`;
  const storedBytes = readFileSync(file);
  if (storedBytes.equals(bytes)) return undefined;
  const stored = PNG.sync.read(storedBytes);
  const current = PNG.sync.read(bytes);
  const { width, height } = stored;
  if (width !== current.width || height !== current.height) {
    keep(name, bytes);
    return `${name}: ${current.width} × ${current.height} instead of ${width} × ${height}`;
  }
  const difference = new PNG({ width, height });
  const count = pixelmatch(stored.data, current.data, difference.data, width, height, { threshold: COLOR_TOLERANCE });
  const share = count / (width * height);
  if (share <= MAX_DIFFERENT) return undefined;
  keep(name, bytes);
  keep(`${name}-difference`, PNG.sync.write(difference));
  return `${name}: ${(share * 100).toFixed(1)} % of the picture differ`;
}

/** For people who want to see what differs. Not in the repository. */
function keep(name: string, bytes: Buffer): void {
  mkdirSync(differences, { recursive: true });
  writeFileSync(`${differences}${name}.png`, bytes);
}

/** Removes what earlier runs kept, and all pictures before they are written. */
export function clearPictures(): void {
  rmSync(isWriting ? directory : differences, { recursive: true, force: true });
}
