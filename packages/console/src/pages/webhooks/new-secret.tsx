import { Code } from '../../ui/copy.tsx';
import { OneTimeSecret } from '../../ui/one-time-secret.tsx';
import { ExactTime } from '../../ui/time.tsx';
import type { NewSigningSecret } from './create.tsx';

/** A signing secret, shown once, and how to use it. */
export function NewSecret({ created, onClose }: { created: NewSigningSecret; onClose: () => void }) {
  const { environment, secret, previousExpiresAt } = created;
  const isRotated = previousExpiresAt !== undefined;
  return (
    <OneTimeSecret title={`Signing secret of ${environment}`} secret={secret} onClose={onClose}>
      {isRotated && (
        <p>
          {previousExpiresAt === null ? (
            'The previous secret is no longer used. Replace it in your receiver now.'
          ) : (
            <>
              Add it to your receiver now, next to the old one. Both are valid until{' '}
              <ExactTime at={previousExpiresAt} />, so nothing is lost.
            </>
          )}
        </p>
      )}
      <h3>Example receiver</h3>
      <Code text={receiverProgram(typeof previousExpiresAt === 'string')} />
      <p className="quiet small">
        Keep the secret in an environment variable, not in your source code. In other languages, use a Standard Webhooks
        library to verify deliveries.
      </p>
    </OneTimeSecret>
  );
}

function receiverProgram(both: boolean): string {
  const hint = both ? '\n// While both are valid: SIGNALBOX_SIGNING_SECRET=whsec_new…,whsec_old…' : '';
  return `import { createServer } from 'node:http';
import { webhooks } from '@signalbox/client';
${hint}
const receiver = webhooks.receiver({
  secrets: (process.env.SIGNALBOX_SIGNING_SECRET ?? '').split(','),
  onChunks: async ({ sessionId, chunks }) => {
    // Store what you need, then return. The receiver responds with 200.
    console.log(sessionId, chunks);
  },
});
createServer(receiver.node).listen(8080);`;
}
