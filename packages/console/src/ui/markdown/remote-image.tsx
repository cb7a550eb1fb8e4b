// An image of another host. Loading it tells the host who reads, and when, so the reader decides.
import { Image } from 'lucide-react';
import { useState } from 'react';
import { Button } from '../button.tsx';
import { visible } from '../text.tsx';
import { External, hostOf } from './external.tsx';

const MAX_ADDRESS = 2000;
const MAX_ALT = 200;

export function RemoteImage({ address, alt }: { address: string; alt: string }) {
  const [isShown, setShown] = useState(false);
  const host = hostOf(address);
  // The frame loads no other (http/console/remote-image.ts of the server), and its own address has a limit.
  const canShow = /^https:/i.test(address) && address.length <= MAX_ADDRESS;
  return (
    <span className="md-image" data-shown={isShown || undefined}>
      {isShown && (
        <iframe
          title={alt === '' ? `Image from ${host}` : alt}
          src={`/console/remote-image?${new URLSearchParams({ src: address, alt: alt.slice(0, MAX_ALT) })}`}
          sandbox=""
          referrerPolicy="no-referrer"
        />
      )}
      <span className="md-image-line">
        <Image aria-hidden="true" />
        {alt !== '' && <span>{visible(alt)}</span>}
        {canShow && (
          // A message can put what it knows into the address, so the reader sees all of it before the host does.
          <Button small look="bare" title={address} onClick={() => setShown(!isShown)}>
            {isShown ? 'Hide' : `Show image from ${host}`}
          </Button>
        )}
        {(isShown || !canShow) && (
          <External address={address}>{isShown ? 'Open in a new tab' : `Open image from ${host}`}</External>
        )}
      </span>
    </span>
  );
}
