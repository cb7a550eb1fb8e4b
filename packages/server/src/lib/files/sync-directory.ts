import { open } from 'node:fs/promises';

/** After a rename in it, so that the rename survives a power failure. File systems that can't do it, such as network shares, are left alone. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return;
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException;
    if (!['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS'].includes(code)) throw error;
  } finally {
    await directory.close();
  }
}
