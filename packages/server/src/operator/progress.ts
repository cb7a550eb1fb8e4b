/** How far a long command is. Called often; the caller decides how often it shows it. */
export type Progress = (state: ProgressState) => void;

export interface ProgressState {
  /** What it does, such as `copying`. */
  step: string;
  table?: string;
  /** Rows of this table so far. */
  rows?: number;
  /** How many parts are done, of how many. */
  done?: number;
  of?: number;
}
