// Which columns have room.
import type { Column } from './columns.ts';

/** What a column without a width needs: the first one for what a person recognizes, such as an agent's name and a few words. */
const FIRST_REM = 14;
const OTHER_REM = 7;

/**
 * The columns for which a table of this width has room, without the last ones that may give way. `besideRem` is the width of what is
 * in each row but is not a column of the list.
 */
export function columnsThatFit<T>(columns: readonly Column<T>[], widthRem: number, besideRem = 0): Column<T>[] {
  const fitting = [...columns];
  for (const from of ['wide', 'desktop'] as const) {
    while (neededRem(fitting, widthRem) + besideRem > widthRem) {
      const last = fitting.findLastIndex((column) => column.from === from);
      if (last < 1) break;
      fitting.splice(last, 1);
    }
  }
  return fitting;
}

function neededRem<T>(columns: readonly Column<T>[], tableRem: number): number {
  const needed = columns.map(({ width }, index) => {
    if (width === undefined) return index === 0 ? FIRST_REM : OTHER_REM;
    return width.endsWith('%') ? (tableRem * Number.parseFloat(width)) / 100 : Number.parseFloat(width);
  });
  return needed.reduce((sum, one) => sum + one, 0);
}
