import type { LucideIcon } from 'lucide-react';

/** A line of the palette. */
export interface PaletteItem {
  /** Different from that of every other item. */
  id: string;
  group: string;
  label: string;
  /** After the label, quieter. */
  detail?: string | undefined;
  /** Matched as well, but not shown. */
  words?: string;
  icon: LucideIcon;
  /** The shortcut that does the same. */
  keys?: string | undefined;
  run(): void;
}
