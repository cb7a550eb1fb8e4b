// The service under test; its environment configures it.
import { readConfig, startService } from '../packages/server/src/main.ts';

const service = await startService(readConfig());
async function stop(): Promise<void> {
  await service.stop();
  process.exit();
}
process.once('SIGTERM', stop);
// Whoever started it is gone.
process.once('disconnect', stop);
process.send!(service.url);
