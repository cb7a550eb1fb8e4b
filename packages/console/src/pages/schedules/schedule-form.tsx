// The form to create or edit a schedule.
import type { CreateSchedule, Schedule } from '@signalbox/client';
import { useState } from 'react';
import { useAgents } from '../../data/agent-names.ts';
import { useEnvironment } from '../../data/environment.ts';
import { preferredEnvironment, useEnvironmentNames } from '../../data/environment-names.ts';
import { useApiMutation } from '../../data/organization.tsx';
import { Button } from '../../ui/button.tsx';
import { FormDialog } from '../../ui/dialog.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Checkbox, Choices, DateTimeField, Select, TextArea, TextField } from '../../ui/field.tsx';
import { instantOf, localOf } from '../../ui/local-time.ts';
import { MetadataField, metadataText, parseMetadata } from '../../ui/metadata.tsx';
import { fieldError, Notice } from '../../ui/notice.tsx';
import { formatExact, ownTimeZone, timeZones } from '../../ui/time.tsx';
import { useToast } from '../../ui/toast.tsx';
import { BudgetFields, budgetTexts, parseBudget } from '../sessions/budget-fields.tsx';
import { cronText } from './cron-text.ts';
import { NextRuns } from './next-runs.tsx';
import './schedules.css';

const presets = [
  { label: 'Every 15 minutes', cron: '*/15 * * * *' },
  { label: 'Every hour', cron: '0 * * * *' },
  { label: 'Every day at 9', cron: '0 9 * * *' },
  { label: 'Weekdays at 9', cron: '0 9 * * 1-5' },
  { label: 'Mondays at 9', cron: '0 9 * * 1' },
  { label: 'First of the month', cron: '0 9 1 * *' },
];

export function ScheduleForm({ schedule, onClose }: { schedule?: Schedule; onClose: () => void }) {
  const toast = useToast();
  const agents = (useAgents().data ?? []).filter(
    ({ archivedAt, agentId }) => archivedAt === null || agentId === schedule?.agentId,
  );
  const environments = useEnvironmentNames() ?? [];
  const ofPage = useEnvironment();
  const [name, setName] = useState(schedule?.name ?? '');
  const [chosenAgent, setAgent] = useState(schedule?.agentId ?? '');
  const [chosenEnvironment, setEnvironment] = useState(schedule?.environment ?? '');
  const [kind, setKind] = useState<'cron' | 'at'>(schedule && schedule.at !== null ? 'at' : 'cron');
  const [cron, setCron] = useState(schedule ? (schedule.cron ?? '') : '0 9 * * 1-5');
  const [timezone, setTimezone] = useState(schedule?.timezone ?? ownTimeZone());
  const [at, setAt] = useState(localOf(schedule?.at ?? undefined));
  const [input, setInput] = useState(textOf(schedule?.input ?? null));
  const [closeOnIdle, setCloseOnIdle] = useState(schedule?.closeOnIdle ?? true);
  const [budget, setBudget] = useState(() => budgetTexts(schedule?.budget ?? null));
  const [metadata, setMetadata] = useState(metadataText(schedule?.metadata ?? {}));
  const [wrong, setWrong] = useState<{ at?: string; metadata?: string }>({});
  const agentId = chosenAgent || (agents[0]?.agentId ?? '');
  const environment = chosenEnvironment || preferredEnvironment(environments, ofPage);
  const save = useApiMutation(
    (client, body: CreateSchedule) =>
      schedule ? client.schedules.update(schedule.scheduleId, changed(schedule, body)) : client.schedules.create(body),
    ['schedules'],
  );
  const errorFor = (path: string) => fieldError(save.error, path);

  async function submit() {
    setWrong({});
    const instant = instantOf(at);
    if (kind === 'at' && instant === undefined) {
      setWrong({ at: 'Enter a date and a time.' });
      throw new Error('Enter the date and time of the run.');
    }
    let values: CreateSchedule['metadata'];
    try {
      values = parseMetadata(metadata);
    } catch (error) {
      setWrong({ metadata: (error as Error).message });
      throw error;
    }
    const { nextAt } = await save.mutateAsync({
      name: name.trim() || null,
      agentId,
      environment,
      // A message in parts, for which this form has no field, is kept unless the user writes another.
      input: schedule && input === textOf(schedule.input) ? schedule.input : input.trim() === '' ? null : input,
      closeOnIdle,
      metadata: values,
      budget: parseBudget(budget),
      ...(kind === 'cron'
        ? { cron, timezone: timezone.trim() || null, at: null }
        : { cron: null, timezone: null, at: schedule?.at && localOf(schedule.at) === at ? schedule.at : instant! }),
    });
    toast(nextAt ? `Schedule saved. Next run: ${formatExact(nextAt)}` : 'Schedule saved');
  }

  const words = cronText(cron);
  return (
    <FormDialog
      title={schedule ? 'Edit schedule' : 'New schedule'}
      action={schedule ? 'Save' : 'Create schedule'}
      beside={['name', 'agentId', 'environment', 'cron', 'timezone', 'at', 'input', 'budget', 'metadata']}
      submit={submit}
      onClose={onClose}
    >
      {agents.length === 0 && (
        <Notice kind="warn">
          <p>There are no agents yet. Create one first.</p>
        </Notice>
      )}
      <TextField
        label="Name (optional)"
        hint="Lists show the agent’s name if it is empty."
        maxLength={200}
        value={name}
        error={errorFor('name')}
        onChange={(event) => setName(event.currentTarget.value)}
      />
      <Select
        label="Agent"
        hint="Each run uses its newest version."
        value={agentId}
        error={errorFor('agentId')}
        onChange={(event) => setAgent(event.currentTarget.value)}
        options={agents.map((agent) => ({ value: agent.agentId, label: agent.name }))}
      />
      <Select
        label="Environment"
        value={environment}
        error={errorFor('environment')}
        onChange={(event) => setEnvironment(event.currentTarget.value)}
        options={environments.map((value) => ({ value, label: value }))}
      />
      <Choices
        label="Repeat"
        value={kind}
        onChange={setKind}
        options={[
          { value: 'cron', label: 'On a schedule' },
          { value: 'at', label: 'Once' },
        ]}
      />
      {kind === 'cron' ? (
        <>
          <fieldset>
            <legend>Presets</legend>
            <div className="presets">
              {presets.map((preset) => (
                <Button
                  key={preset.cron}
                  small
                  aria-pressed={cron.trim() === preset.cron}
                  onClick={() => setCron(preset.cron)}
                >
                  {preset.label}
                </Button>
              ))}
            </div>
          </fieldset>
          <TextField
            label="Cron expression"
            mono
            hint={
              words ? (
                <>= {words}</>
              ) : (
                <>
                  Minute, hour, day of month, month, day of week: <code>0 9 * * 1-5</code> is Monday to Friday at 09:00.
                </>
              )
            }
            value={cron}
            error={errorFor('cron')}
            onChange={(event) => setCron(event.currentTarget.value)}
          />
          <TextField
            label="Time zone"
            list="time-zones"
            hint="For example Europe/Berlin. Default: UTC."
            value={timezone}
            error={errorFor('timezone')}
            onChange={(event) => setTimezone(event.currentTarget.value)}
          />
          <datalist id="time-zones">
            {timeZones().map((zone) => (
              <option key={zone} value={zone} />
            ))}
          </datalist>
          <NextRuns cron={cron} timezone={timezone.trim()} />
        </>
      ) : (
        <DateTimeField
          label="Date and time"
          value={at}
          error={wrong.at ?? errorFor('at')}
          onChange={(event) => setAt(event.currentTarget.value)}
        />
      )}
      <TextArea
        label="First message"
        hint="Sent to the agent in each run. Leave empty to open sessions without starting a turn."
        value={input}
        error={errorFor('input')}
        onChange={(event) => setInput(event.currentTarget.value)}
      />
      <Checkbox
        label="Close each session after its first turn"
        checked={closeOnIdle}
        onChange={(event) => setCloseOnIdle(event.currentTarget.checked)}
      />
      <Disclosure title="More options" summary="Budget, metadata">
        <BudgetFields value={budget} onChange={setBudget} errorFor={errorFor} />
        <MetadataField value={metadata} onChange={setMetadata} error={wrong.metadata ?? errorFor('metadata')} />
      </Disclosure>
    </FormDialog>
  );
}

/** The text of a first message, or of all its parts; a file is named by its id. */
export function textOf(input: Schedule['input']): string {
  return input === null
    ? ''
    : typeof input === 'string'
      ? input
      : input.map((part) => (part.type === 'text' ? part.text : `[${part.fileId}]`)).join('\n\n');
}

/** Only the changed fields: sending an unchanged time again would restart it. */
function changed(schedule: Schedule, body: CreateSchedule): Partial<CreateSchedule> {
  return Object.fromEntries(
    Object.entries(body).filter(
      ([field, value]) => JSON.stringify(value) !== JSON.stringify(schedule[field as keyof Schedule]),
    ),
  );
}
