import { modelServer, modelServers } from '@signalbox/contract';
import { Select } from '../../ui/field.tsx';
import { useDraft } from './draft.tsx';
import { modelOf } from './model.ts';

/** The server of an OpenAI-compatible model. Choosing one fills in its base URL and the usual name of its key. */
export function ServerSelect({ path }: { path: string }) {
  const draft = useDraft();
  const model = modelOf(draft.get(path));
  const chosen = modelServers.find(({ baseUrl }) => baseUrl === model.baseUrl);
  function choose(name: string) {
    const server = modelServer(name);
    const { baseUrl: _, apiKeySecret, ...rest } = model;
    const isUsual = modelServers.some(({ keyName }) => keyName !== undefined && keyName === apiKeySecret);
    const key = server?.keyName ?? (isUsual ? undefined : apiKeySecret);
    const next = {
      ...rest,
      ...(server && { baseUrl: server.baseUrl }),
      ...(key !== undefined && { apiKeySecret: key }),
    };
    draft.set(path, next, `${path}.baseUrl`);
  }
  return (
    <Select
      label="Server"
      value={chosen?.name ?? ''}
      onChange={({ currentTarget }) => choose(currentTarget.value)}
      options={[{ value: '', label: 'Another' }, ...modelServers.map(({ name, label }) => ({ value: name, label }))]}
    />
  );
}
