import { Check, Copy } from 'lucide-react';
import { useRef, useState } from 'react';
import { writeClipboard } from './clipboard.ts';
import { useToast } from './toast.tsx';

const COPIED_MS = 1500;

/** The end of an id, which identifies it. A click copies the whole id. */
export function IdChip({ value }: { value: string }) {
  const toast = useToast();
  const [isCopied, setCopied] = useState(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const [prefix = '', body = value] = value.split('_');
  const short = body.length > 10 ? `${prefix}_…${body.slice(-6)}` : value;
  const copy = async () => {
    if (!(await writeClipboard(value)))
      return toast('Your browser blocked copying. Select the text and copy it yourself.');
    toast('Copied');
    setCopied(true);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setCopied(false), COPIED_MS);
  };
  const Icon = isCopied ? Check : Copy;
  return (
    <button type="button" className="id-chip" title={`${value}: copy`} onClick={copy}>
      {/* The visible text is part of the accessible name, as voice control needs it. */}
      {short}
      <span className="visually-hidden">: copy</span>
      <Icon aria-hidden="true" />
    </button>
  );
}
