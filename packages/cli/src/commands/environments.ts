// `signalbox environments …`: environments, how long they keep sessions, and how often they call models.
import type { Environment, SetModelLimit } from '@signalbox/client';
import { command, UsageError } from '../command.ts';
import { listOptions, printList, printResult, timeText } from '../print.ts';
import { serviceOf, serviceOptions } from '../service.ts';
import type { Column } from '../table.ts';
import { counted } from '../text.ts';

const name = { name: { about: 'the name of the environment, such as production' } } as const;
const keep = { type: 'string', value: 'DAYS', about: 'how many days sessions are kept after they end' } as const;
const limit = {
  type: 'string',
  value: 'MODEL=REQUESTS,TOKENS',
  multiple: true,
  about:
    'how many requests and tokens a minute a model may take; one of the two is enough, and * is for all other models',
} as const;

const list = command({
  name: 'list',
  summary: 'List environments, newest first',
  options: { ...listOptions, ...serviceOptions },
  examples: [['environments list', 'all environments']],
  needs: ['agents:read'],
  operations: ['listEnvironments'],
  run(input) {
    const client = serviceOf(input);
    return printList(input, (page) => client.environments.list(page), {
      id: (environment) => environment.name,
      describe: (): Column<Environment>[] => [
        { header: 'ENVIRONMENT', cell: (environment) => environment.name },
        { header: 'SESSIONS ARE KEPT', cell: keptText },
        { header: 'MODEL LIMITS', cell: limitsText },
        { header: 'CREATED', cell: ({ createdAt }) => timeText(createdAt, input.terminal) },
      ],
    });
  },
});

const create = command({
  name: 'create',
  summary: 'Create an environment',
  arguments: name,
  options: { 'keep-sessions-days': keep, 'model-limit': limit, ...serviceOptions },
  examples: [['environments create preview --keep-sessions-days 7', 'an environment that forgets after a week']],
  needs: ['environments:write'],
  operations: ['createEnvironment'],
  async run(input) {
    const keepSessionsDays = daysIn(input.values['keep-sessions-days'], input.command);
    const modelLimits = limitsIn(input.values['model-limit'], input.command);
    const params = { name: input.args.name, keepSessionsDays, ...(modelLimits && { modelLimits }) };
    const created = await serviceOf(input).environments.create(params);
    await printResult(input, created, `created: ${created.name}`);
  },
});

const update = command({
  name: 'update',
  summary: 'Change how long an environment keeps sessions, and how often it calls models',
  arguments: name,
  options: {
    'keep-sessions-days': { ...keep, about: `${keep.about}; none: the limit of the operator` },
    'model-limit': { ...limit, about: `${limit.about}. Replaces all limits; none: removes them` },
    ...serviceOptions,
  },
  examples: [
    ['environments update production --keep-sessions-days 90', 'keep sessions for 90 days'],
    ["environments update production --model-limit '*=60'", 'all models together: 60 requests a minute'],
    [
      "environments update production --model-limit openai/gpt-6.1-terra=500,200000 --model-limit '*=,50000'",
      'requests and tokens of one model, and tokens of all others',
    ],
    ['environments update production --model-limit none', 'no limits'],
  ],
  needs: ['organization:manage'],
  operations: ['updateEnvironment'],
  async run(input) {
    const keepSessionsDays = daysIn(input.values['keep-sessions-days'], input.command);
    const modelLimits = limitsIn(input.values['model-limit'], input.command);
    if (keepSessionsDays === undefined && !modelLimits) {
      const message = `${input.command} needs --keep-sessions-days, --model-limit, or both`;
      throw new UsageError(message, `${input.command} --help`);
    }
    const params = { keepSessionsDays, ...(modelLimits && { modelLimits }) };
    const updated = await serviceOf(input).environments.update(input.args.name, params);
    const limits = limitsText(updated) || 'none';
    await printResult(
      input,
      updated,
      `${updated.name} keeps sessions ${keptText(updated)}; limits of models: ${limits}`,
    );
  },
});

const remove = command({
  name: 'delete',
  summary: 'Delete an environment that has no open sessions, webhook subscription or schedules',
  arguments: name,
  options: serviceOptions,
  examples: [['environments delete preview', 'delete an environment']],
  needs: ['environments:write'],
  operations: ['deleteEnvironment'],
  async run(input) {
    const deleted = await serviceOf(input).environments.delete(input.args.name);
    await printResult(input, deleted, `deleted: ${input.args.name}`);
  },
});

export const commands = [list, create, update, remove];

function keptText({ keepSessionsDays: days }: Environment): string {
  return days === null ? 'as the operator has set' : `for ${counted(days, 'day')}`;
}

function daysIn(text: string | undefined, fullName: string): number | null | undefined {
  if (text === undefined) return undefined;
  if (text === 'none') return null;
  if (!/^\d{1,6}$/.test(text))
    throw new UsageError(`${fullName}: --keep-sessions-days must be a whole number, or none`, `${fullName} --help`);
  return Number(text);
}

/** `*: 60 requests a minute (12 wait)`. */
function limitsText({ modelLimits = [] }: Pick<Environment, 'modelLimits'>): string {
  return modelLimits
    .map(({ model, requestsPerMinute, tokensPerMinute, waiting }) => {
      const parts = [
        requestsPerMinute !== null && counted(requestsPerMinute, 'request'),
        tokensPerMinute !== null && counted(tokensPerMinute, 'token'),
      ];
      const rate = `${model}: ${parts.filter(Boolean).join(' and ')} a minute`;
      return waiting > 0 ? `${rate} (${waiting} wait)` : rate;
    })
    .join(', ');
}

function limitsIn(texts: readonly string[] | undefined, fullName: string): SetModelLimit[] | undefined {
  if (texts === undefined || texts.length === 0) return undefined;
  if (texts.length === 1 && texts[0] === 'none') return [];
  return texts.map((text) => {
    // The name of a model may have a = of its own.
    const [, model = '', requests = '', tokens = ''] = /^(.+)=(\d{0,15})(?:,(\d{0,15}))?$/.exec(text) ?? [];
    if (requests === '' && tokens === '') {
      const message = `${fullName}: --model-limit must be such as openai/gpt-6.1-terra=60, '*=60,200000' or '*=,200000', or none`;
      throw new UsageError(message, `${fullName} --help`);
    }
    return {
      model,
      ...(requests !== '' && { requestsPerMinute: Number(requests) }),
      ...(tokens !== '' && { tokensPerMinute: Number(tokens) }),
    };
  });
}
