import './keys.css';

const isApple = /Mac|iPhone|iPad/.test(navigator.platform);
const signs: Record<string, string> = {
  mod: isApple ? '⌘' : 'Ctrl',
  shift: '⇧',
  Enter: '↵',
  Escape: 'Esc',
  ArrowUp: '↑',
  ArrowDown: '↓',
};

/** `g s` as two keys in a row, `mod+k` as two keys together. */
export function Keys({ keys }: { keys: string }) {
  return (
    <span className="keys">
      {keys.split(/[ +]/).map((key, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: the keys of a shortcut never change
        <kbd key={at}>{signs[key] ?? key.toUpperCase()}</kbd>
      ))}
    </span>
  );
}
