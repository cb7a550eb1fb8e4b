// A real S3 server with one bucket, for tests.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3';
import S3rver from 's3rver';
import { vi } from 'vitest';
import type { S3Location } from '../../src/config/setting-values.ts';

export interface S3Server {
  location: S3Location;
  /** The keys of all objects. */
  keys(): Promise<string[]>;
  stop(): Promise<void>;
}

const bucket = 'files';
/** The credentials that the server accepts. */
const credentials = { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' };

/** The AWS SDK finds its credentials in the environment. */
export async function startS3Server(): Promise<S3Server> {
  vi.stubEnv('AWS_ACCESS_KEY_ID', credentials.accessKeyId);
  vi.stubEnv('AWS_SECRET_ACCESS_KEY', credentials.secretAccessKey);
  const directory = mkdtempSync(join(tmpdir(), 'signalbox-s3-'));
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: bucket }],
  });
  const { port } = await server.run();
  const endpoint = `http://127.0.0.1:${port}`;
  const region = 'us-east-1';
  const client = new S3Client({ endpoint, region, forcePathStyle: true, credentials });
  return {
    location: { bucket, prefix: 'test/', region, endpoint, usesPaths: true },
    async keys() {
      const { Contents = [] } = await client.send(new ListObjectsV2Command({ Bucket: bucket }));
      return Contents.map(({ Key }) => Key!);
    },
    async stop() {
      client.destroy();
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
