import manifest from '../../package.json' with { type: 'json' };

/** The version of the service, as in its responses and its `User-Agent`. */
export const version: string = manifest.version;
