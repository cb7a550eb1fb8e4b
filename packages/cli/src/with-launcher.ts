// Preloaded into the Node that newer-node.ts started: if its launcher is killed, the command stops as well.
process.on('disconnect', () => process.kill(process.pid, 'SIGTERM'));
process.channel?.unref();
