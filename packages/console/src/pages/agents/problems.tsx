import type { FieldError } from '@signalbox/contract';
import { nameOfPath } from '../../ui/notice.tsx';

/** The errors, each with a link to its field. */
export function Problems({
  problems,
  onChoose,
  most = 20,
  none,
  isOfForm = false,
}: {
  problems: readonly FieldError[];
  onChoose: (path: string) => void;
  most?: number;
  /** The text if there are no errors. */
  none?: string;
  /** The names of fields, in place of the paths that JSON has. */
  isOfForm?: boolean;
}) {
  const { length } = problems;
  if (length === 0) return none ? <p className="quiet small">{none}</p> : null;
  return (
    <div className="problems small">
      <strong>{length === 1 ? '1 problem to fix' : `${length} problems to fix`}</strong>
      <ul>
        {problems.slice(0, most).map(({ path, message }) => (
          <li key={path}>
            <button type="button" className={isOfForm ? 'link' : 'link mono'} onClick={() => onChoose(path)}>
              {isOfForm ? nameOfPath(path) || 'Definition' : path || 'definition'}
            </button>{' '}
            {message}
          </li>
        ))}
        {length > most && <li>and {length - most} more</li>}
      </ul>
    </div>
  );
}
