// Short messages about what just happened, announced by screen readers.
import { createContext, type ReactNode, useCallback, useContext, useState } from 'react';

const SHOWN_MS = 4000;
const ToastContext = createContext<(text: string) => void>(() => {});

/** Shows a message for 4 seconds, for successes. Errors use `ErrorNotice` in place, or `errorText` if there is no room for one. */
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
