import { Code } from '../../ui/copy.tsx';
import { SecretOnce } from '../../ui/secret-once.tsx';
import { ExactTime } from '../../ui/time.tsx';
import type { NewSigningSecret } from './create.tsx';

/** A signing secret, the one time that it is there to be seen, and what to do with it. */
export function NewSecret({ made, onClose }: { made: NewSigningSecret; onClose: () => void }) {
  const { environment, secret, previousExpiresAt } = made;
  const isRotated = previousExpiresAt !== undefined;
  return (
    <SecretOnce title={`The signing secret of ${environment}`} secret={secret} onClose={onClose}>
      {isRotated && (
        <p>
          {previousExpiresAt === null ? (
            'The secret before signs nothing any more. Put this one in its place in your receiver now.'
          ) : (
            <>
              Put it into your receiver now, beside the old one. Until <ExactTime at={previousExpiresAt} /> both are
              good, and nothing is lost meanwhile.
            </>
          )}
        </p>
      )}
      <h3>A receiver that verifies with it</h3>
      <Code text={receiverProgram(typeof previousExpiresAt === 'string')} />
      <p className="quiet small">
        Your program reads the secret from its environment; don't write it into the source. Other languages: the
        libraries of Standard Webhooks verify these deliveries as they are.
      </p>
    </SecretOnce>
  );
}

function receiverProgram(both: boolean): string {
  const hint = both ? '\n// While both are good: SIGNALBOX_SIGNING_SECRET=whsec_new…,whsec_old…' : '';
  return `import { createServer } from 'node:http';
import { webhooks } from '@signalbox/client';
${hint}
const receiver = webhooks.receiver({
  secrets: (process.env.SIGNALBOX_SIGNING_SECRET ?? '').split(','),
  onChunks: async ({ sessionId, chunks }) => {
    // Keep what you need, then return: that answers 200.
    console.log(sessionId, chunks);
  },
});
createServer(receiver.node).listen(8080);`;
}
