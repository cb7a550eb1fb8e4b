// What the Helm chart renders, in each of its forms, is valid for Kubernetes and for its restricted pod security standard.
import { PrometheusRule, ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { Ingress, NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Secret, Service, ServiceAccount } from 'kubernetes-models/v1';
import { expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { chart, isHelmThere, runHelm } from './support/helm.ts';

const secrets = { values: { DATABASE_URL: 'postgres://u:p@db/d', SIGNALBOX_MASTER_KEY: 'a2V5' } };

interface Rendered {
  status: number | null;
  output: string;
  // biome-ignore lint/suspicious/noExplicitAny: each kind has a type of its own, and is validated below.
  resources: any[];
}

function render(values: object, ...args: string[]): Rendered {
  const { status, stdout, stderr } = runHelm(['template', 'prod', chart, ...args], values);
  const resources = parseAllDocuments(stdout)
    .map((document) => document.toJS() as { kind: string } | null)
    .filter((resource) => resource !== null);
  return { status, output: stdout + stderr, resources };
}

const kinds: Record<string, new (data: never) => { validate(): void }> = {
  Deployment,
  Ingress,
  NetworkPolicy,
  PodDisruptionBudget,
  PrometheusRule,
  Secret,
  Service,
  ServiceAccount,
  ServiceMonitor,
};

const forms: Record<string, object> = {
  'two nodes with all roles': { secrets },
  'a node group for each role, each with its own size': {
    secrets,
    nodes: [
      { name: 'api', roles: ['api'], replicas: 3, env: { SIGNALBOX_MAX_CONNECTIONS: 5000 } },
      { name: 'runtime', roles: ['runtime'], resources: { requests: { cpu: 1 }, limits: { memory: '2Gi' } } },
      { name: 'delivery', roles: ['delivery'], replicas: 1, nodeSelector: { zone: 'egress' } },
    ],
  },
  'everything that is optional': {
    secrets: { existingSecret: 'mine', keys: ['DATABASE_URL', 'SIGNALBOX_MASTER_KEY', 'SIGNALBOX_METRICS_TOKEN'] },
    image: { digest: `sha256:${'0'.repeat(64)}` },
    imagePullSecrets: [{ name: 'registry' }],
    publicUrl: 'https://signalbox.example.com',
    trustProxy: ['10.0.0.0/8', '::1'],
    env: { SIGNALBOX_LOG_LEVEL: 'warn', SIGNALBOX_SESSIONS_KEPT_DAYS: 30 },
    strategy: { type: 'Recreate' },
    ingress: { enabled: true, className: 'nginx', tls: [{ secretName: 'tls', hosts: ['signalbox.example.com'] }] },
    networkPolicy: { enabled: true, ingressFrom: [{ namespaceSelector: { matchLabels: { name: 'ingress' } } }] },
    serviceMonitor: { enabled: true, labels: { release: 'prometheus' } },
    prometheusRule: { enabled: true, labels: { release: 'prometheus' } },
    serviceAccount: { annotations: { role: 'arn' } },
    podAnnotations: { one: 'two' },
    podLabels: { three: 'four' },
    nodeSelector: { disk: 'ssd' },
    tolerations: [{ key: 'dedicated', operator: 'Exists' }],
    affinity: { nodeAffinity: {} },
    priorityClassName: 'high',
    extraVolumes: [{ name: 'ca', configMap: { name: 'ca' } }],
    extraVolumeMounts: [{ name: 'ca', mountPath: '/ca', readOnly: true }],
  },
};

test.runIf(isHelmThere)('helm finds nothing wrong in the chart', () => {
  const { status, stdout } = runHelm(['lint', '--strict', chart], { secrets });
  expect(status, stdout).toBe(0);
});

for (const [form, values] of Object.entries(forms)) {
  test.runIf(isHelmThere)(
    `${form}: every resource is valid, and every pod is restricted and gets its secrets as files`,
    () => {
      const { status, output, resources } = render(values);
      expect(status, output).toBe(0);
      for (const resource of resources) {
        const Kind = kinds[resource.kind as string]!;
        new Kind(resource as never).validate();
      }
      const deployments = resources.filter(({ kind }) => kind === 'Deployment');
      expect(deployments.length).toBeGreaterThan(0);
      for (const { spec } of deployments) {
        const pod = spec.template.spec;
        const [container] = pod.containers;
        expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
        expect(container.securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
        expect(spec.template.metadata.labels).toMatchObject(spec.selector.matchLabels);
        const names = (container.env as { name: string }[]).map(({ name }) => name);
        expect(new Set(names).size).toBe(names.length);
        expect(names).toContain('DATABASE_URL_FILE');
        expect(names).not.toContain('DATABASE_URL');
        const volumes = new Set((pod.volumes as { name: string }[]).map(({ name }) => name));
        for (const mount of container.volumeMounts as { name: string }[]) expect(volumes).toContain(mount.name);
        const ports = new Set((container.ports as { name: string }[]).map(({ name }) => name));
        for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
          expect(ports).toContain(container[probe].httpGet.port);
        }
      }
      // A service leads to the pods of this release that have its port, and to at least one.
      const services = resources.filter(({ kind }) => kind === 'Service');
      for (const { spec } of services) {
        const wanted = Object.entries(spec.selector);
        const pods = deployments
          .map((deployment) => deployment.spec.template)
          .filter(({ metadata }) => wanted.every(([name, value]) => metadata.labels[name] === value));
        expect(pods.length).toBeGreaterThan(0);
        for (const pod of pods) {
          const ports = (pod.spec.containers[0].ports as { name: string }[]).map(({ name }) => name);
          expect(ports).toContain(spec.ports[0].targetPort);
        }
      }
    },
  );
}

test.runIf(isHelmThere)('a pod may stop for as long as its node drains and finishes turns, and 20 s more', () => {
  const { resources } = render({ secrets, drainSeconds: 15, graceSeconds: 120 });
  const { spec } = resources.find(({ kind }) => kind === 'Deployment');
  expect(spec.template.spec.terminationGracePeriodSeconds).toBe(155);
  expect(spec.template.spec.containers[0].env).toEqual(
    expect.arrayContaining([
      { name: 'SIGNALBOX_DRAIN_SECONDS', value: '15' },
      { name: 'SIGNALBOX_GRACE_SECONDS', value: '120' },
    ]),
  );
});

test.runIf(isHelmThere)('a changed secret changes the pods, so they are replaced', () => {
  const checksumOf = (url: string) =>
    render({ secrets: { values: { ...secrets.values, DATABASE_URL: url } } }).resources.find(
      ({ kind }) => kind === 'Deployment',
    ).spec.template.metadata.annotations['checksum/secrets'] as string;
  expect(checksumOf('postgres://u:p@one/d')).not.toBe(checksumOf('postgres://u:p@two/d'));
});

test.runIf(isHelmThere).each([
  ['no database', {}, 'DATABASE_URL is missing'],
  ['no master key', { secrets: { values: { DATABASE_URL: 'x' } } }, 'SIGNALBOX_MASTER_KEY is missing'],
  [
    'an existing Secret without a master key',
    { secrets: { existingSecret: 'mine', keys: ['DATABASE_URL'] } },
    'is missing',
  ],
  ['metrics that nothing can read', { secrets, serviceMonitor: { enabled: true } }, 'SIGNALBOX_METRICS_TOKEN'],
  ['a misspelled value', { secrets, replica: 3 }, 'replica'],
  ['a role that does not exist', { secrets, nodes: [{ name: 'a', roles: ['webhooks'] }] }, 'roles'],
  ['a secret in the environment', { secrets, env: { SIGNALBOX_MASTER_KEY: 'x' } }, 'SIGNALBOX_MASTER_KEY'],
])('%s is refused with a message that says so', (_, values, message) => {
  const { status, output } = render(values);
  expect(status).not.toBe(0);
  expect(output).toContain(message);
});
