import type { ReactNode } from 'react';

/** A link out of the console. Its address is shown on hover. */
export function External({ address, children }: { address: string; children: ReactNode }) {
  return (
    <a href={address} title={address} target="_blank" rel="noopener noreferrer nofollow">
      {children}
    </a>
  );
}

export function hostOf(address: string): string {
  return URL.canParse(address) ? new URL(address).host : address;
}
