// A service for the demo, with its own PostgreSQL in a temporary directory that is deleted at the end.
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createKeyOnHost, readConfig, startService } from '@signalbox/server';

export interface DemoService {
  readonly url: string;
  /** The secret of an admin key, as `signalbox keys create` prints it. */
  readonly apiKey: string;
  stop(): Promise<void>;
}

/** `reachable`: private hosts that tools, webhooks and models may connect to. */
export async function startDemoService(reachable: readonly string[]): Promise<DemoService> {
  const dataDir = await mkdtemp(join(tmpdir(), 'signalbox-demo-'));
  const remove = () => rm(dataDir, { recursive: true, force: true });
  try {
    const config = readConfig(
      { 'data-dir': dataDir, port: '0' },
      // Ignore the user's environment variables: DATABASE_URL may point at a real installation.
      { SIGNALBOX_EGRESS_ALLOW: reachable.join(','), SIGNALBOX_LOG_LEVEL: 'fatal' },
    );
    const service = await startService(config);
    const stop = async () => {
      await service.stop();
      await remove();
    };
    try {
      const { apiKey } = await createKeyOnHost(config, { name: 'Demo host', permission: 'admin' });
      return { url: service.url ?? '', apiKey: apiKey.secret, stop };
    } catch (error) {
      await stop();
      throw error;
    }
  } catch (error) {
    await remove();
    throw error;
  }
}
