// The service under test, configured by environment variables. Reports its resource use on request.
import { readConfig, startService } from '../../packages/server/src/main.ts';

const service = await startService(readConfig());
async function stop(): Promise<void> {
  await service.stop();
  process.exit();
}
process.once('SIGTERM', stop);
// The parent process is gone.
process.once('disconnect', stop);
process.on('message', () => {
  const { user, system } = process.cpuUsage();
  process.send!({ residentMb: process.memoryUsage.rss() / 1e6, serviceMs: (user + system) / 1000 });
});
process.send!(service.url);
