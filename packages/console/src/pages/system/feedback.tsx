import { SignalboxError } from '@signalbox/client';
import { useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { Drawer } from '../../ui/drawer.tsx';
import { ErrorNotice, Notice } from '../../ui/notice.tsx';
import { OneTimeSecret } from '../../ui/one-time-secret.tsx';
import { SkeletonCards, SkeletonRows } from '../../ui/skeleton.tsx';
import { useToast } from '../../ui/toast.tsx';
import { Specimen } from './system.tsx';

const failed = new SignalboxError({
  status: 503,
  code: 'unavailable',
  detail: 'The database does not respond.',
  requestId: 'req_01m82mwmbpecvbd9b1c0jr5p69',
});

export function Feedback() {
  return (
    <>
      <Specimen name="Notices">
        <Notice title="The next delivery is in 3 minutes.">
          <p>Deliveries are queued and will be sent in order.</p>
        </Notice>
        <Notice kind="good" title="All steps are done." />
        <Notice kind="warn" title="Copy the secret now. It won’t be shown again." />
        <ErrorNotice error={failed} retry={async () => {}} />
      </Specimen>
      <Specimen name="Skeletons">
        <SkeletonCards cards={1} />
        <SkeletonRows rows={3} />
      </Specimen>
      <Specimen name="Overlays">
        <Overlays />
      </Specimen>
    </>
  );
}

function Overlays() {
  const toast = useToast();
  const [open, setOpen] = useState<'dialog' | 'drawer' | 'secret'>();
  const close = () => setOpen(undefined);
  return (
    <div className="row">
      <Button onClick={() => setOpen('dialog')}>Open a dialog</Button>
      <Button onClick={() => setOpen('drawer')}>Open a drawer</Button>
      <Button onClick={() => setOpen('secret')}>Show a secret once</Button>
      <Button onClick={() => toast('Copied')}>Show a toast</Button>
      {open === 'dialog' && (
        <Dialog title="Delete Refund desk?" onClose={close}>
          <p>Its sessions stay. Programs that open sessions with the agent fail from now on.</p>
          <div className="foot">
            <Button onClick={close}>Cancel</Button>
            <Button look="danger" onClick={close}>
              Delete agent
            </Button>
          </div>
        </Dialog>
      )}
      {open === 'secret' && (
        <OneTimeSecret title="API key created" secret="sbk_0352JcZ7ic0BozkeCSSlzY" onClose={close} />
      )}
      {open === 'drawer' && (
        <Drawer title="refund_order" onClose={close}>
          <p>The page stays usable next to the drawer.</p>
          <div className="card">
            <p>A card</p>
          </div>
        </Drawer>
      )}
    </div>
  );
}
