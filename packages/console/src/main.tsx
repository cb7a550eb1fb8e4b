import './styles/fonts.css';
import './styles/tokens.css';
import './styles/base.css';
import './styles/ui.css';
import './styles/shell.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { RouterProvider } from '@tanstack/react-router';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { queryClient } from './data/account.ts';
import { applyDensity } from './lib/density.ts';
import { startTheme } from './lib/theme.ts';
import { router } from './router.tsx';
import { Toasts } from './ui/toast.tsx';
import { Tooltips } from './ui/tooltip.tsx';
import { reloadIfUpgraded } from './ui/unavailable.tsx';

startTheme();
applyDensity();
reloadIfUpgraded();
createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Toasts>
        <Tooltips>
          <RouterProvider router={router} />
        </Tooltips>
      </Toasts>
    </QueryClientProvider>
  </StrictMode>,
);
