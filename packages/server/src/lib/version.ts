import manifest from '../../package.json' with { type: 'json' };

/** Of the service, as its answers and its `User-Agent` say it. */
export const version: string = manifest.version;
