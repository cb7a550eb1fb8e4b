// Short words about what just happened, read out by screen readers.
import { createContext, type ReactNode, useCallback, useContext, useState } from 'react';

const SHOWN_MS = 4000;
const ToastContext = createContext<(text: string) => void>(() => {});

/** Shows a line for some seconds: for what succeeded. Errors stay where they happened (`ErrorNotice`). */
export const useToast = () => useContext(ToastContext);

export function Toasts({ children }: { children: ReactNode }) {
  const [shown, setShown] = useState<{ id: number; text: string }[]>([]);
  const show = useCallback((text: string) => {
    const toast = { id: Math.random(), text };
    setShown((all) => [...all.slice(-2), toast]);
    setTimeout(() => setShown((all) => all.filter((one) => one !== toast)), SHOWN_MS);
  }, []);
  return (
    <ToastContext value={show}>
      {children}
      <div className="toasts" role="status">
        {shown.map(({ id, text }) => (
          <div className="toast" key={id}>
            {text}
          </div>
        ))}
      </div>
    </ToastContext>
  );
}
