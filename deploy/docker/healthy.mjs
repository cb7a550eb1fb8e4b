// The health check of the image: exit status 0 if the node's process responds. It does not fail if the database is down, because a restart
// would not help then.
const port = process.env.SIGNALBOX_METRICS_PORT || process.env.SIGNALBOX_PORT || '4500';
const response = await fetch(`http://127.0.0.1:${port}/healthz`);
process.exit(response.ok ? 0 : 1);
