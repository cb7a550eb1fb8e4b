import { Plus, Trash2 } from 'lucide-react';
import { useState } from 'react';
import { Badge } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Disclosure } from '../../ui/disclosure.tsx';
import { Checkbox, Choices, Select, TextArea, TextField } from '../../ui/field.tsx';
import { type Filter, FilterBar } from '../../ui/filter-bar.tsx';
import { Menu } from '../../ui/menu.tsx';
import { PasswordField } from '../../ui/password-field.tsx';
import { Restriction, Several } from '../../ui/restriction.tsx';
import { SavedViews } from '../../ui/saved-views.tsx';
import { Segmented } from '../../ui/segmented.tsx';
import { Setting } from '../../ui/setting.tsx';
import { Tabs } from '../../ui/tabs.tsx';
import { type Range, TimeRange } from '../../ui/time-range.tsx';
import { Tooltip } from '../../ui/tooltip.tsx';
import { Specimen } from './system.tsx';

const none = () => {};

export function Controls() {
  return (
    <>
      <Specimen name="Buttons">
        <div className="row">
          <Button look="primary">Create key</Button>
          <Button>Rotate secret</Button>
          <Button look="danger">Delete agent</Button>
          <Button look="bare">Cancel</Button>
          <Button disabled>Disabled</Button>
          <Button busy>Busy</Button>
        </div>
        <div className="row">
          <Button small>Small</Button>
          <Button small look="primary">
            <Plus aria-hidden="true" /> With an icon
          </Button>
          <Tooltip text="Delete">
            <Button look="bare" className="icon" aria-label="Delete">
              <Trash2 aria-hidden="true" />
            </Button>
          </Tooltip>
          <Menu
            label="More actions"
            items={[
              { label: 'Duplicate', icon: Plus, onSelect: none },
              { label: 'Chosen', isChecked: true, onSelect: none },
              { label: 'Not available', disabled: true, onSelect: none },
              { label: 'Delete', icon: Trash2, danger: true, group: 'danger', onSelect: none },
            ]}
          />
        </div>
      </Specimen>
      <Specimen name="A setting">
        <Setting
          title="Name"
          about="People see the name in the corner of the console."
          action={<Button small>Rename</Button>}
        >
          <TextField label="Name" defaultValue="Acme" />
        </Setting>
      </Specimen>
      <Specimen name="Fields">
        <div className="columns">
          <TextField label="Name" hint="Shown in lists." defaultValue="Refund desk" />
          <TextField label="Email" error="Enter an address such as ana@example.com." defaultValue="ana@" />
          <TextField label="Key" mono placeholder="sk_…" disabled />
          <PasswordField label="Password" defaultValue="a long sentence" />
          <Select
            label="Permission"
            options={[
              { value: 'read', label: 'Read' },
              { value: 'write', label: 'Write' },
            ]}
          />
          <TextArea label="Instructions" rows={3} defaultValue="You are the refund desk of a small shop." />
          <div className="stack">
            <Choices
              label="Delivery"
              value="each"
              onChange={none}
              options={[
                { value: 'each', label: 'Every chunk', about: 'as it is written' },
                { value: 'end', label: 'At the end of a turn' },
              ]}
            />
            <Checkbox label="Close after the first answer" defaultChecked />
          </div>
        </div>
      </Specimen>
      <Specimen name="Restrictions">
        <RestrictionStates />
      </Specimen>
      <Specimen name="Disclosures">
        <Disclosure title="More options" summary="End user, budget, metadata">
          <TextField label="Max steps" placeholder="No limit" />
        </Disclosure>
        <Disclosure title="Limits" summary="20 steps" badge={<Badge tone="bad">problem</Badge>} open>
          <TextField label="Max steps" error="Enter a whole number." defaultValue="some" />
        </Disclosure>
      </Specimen>
      <Specimen name="Choices">
        <SegmentedStates />
      </Specimen>
      <Specimen name="Filters">
        <FilterStates />
      </Specimen>
    </>
  );
}

function SegmentedStates() {
  const [size, setSize] = useState<'day' | 'week' | 'month'>('week');
  const [tab, setTab] = useState<'one' | 'two'>('one');
  return (
    <>
      <Segmented
        label="Period"
        value={size}
        onChange={setSize}
        options={[
          { value: 'day', label: 'Day' },
          { value: 'week', label: 'Week' },
          { value: 'month', label: 'Month' },
        ]}
      />
      <Tabs
        label="Tabs"
        value={tab}
        onChange={setTab}
        tabs={[
          { value: 'one', label: 'Conversation', content: <p>The first tab.</p> },
          { value: 'two', label: 'Trace', content: <p>The second tab.</p> },
        ]}
      />
    </>
  );
}

function RestrictionStates() {
  const [scopes, setScopes] = useState<('read' | 'decide')[]>(['decide']);
  const [environments, setEnvironments] = useState<string[] | null>(['production', 'deleted']);
  const options = ['production', 'staging'].map((value) => ({ value, label: value }));
  return (
    <div className="columns">
      <Several
        label="Scopes"
        options={[
          { value: 'read', label: 'Read sessions' },
          { value: 'decide', label: 'Decide approvals', about: 'of every session' },
        ]}
        value={scopes}
        error={undefined}
        onChange={setScopes}
      />
      <Restriction
        label="Environments"
        all="All environments"
        options={options}
        value={environments}
        error="Choose at least one environment."
        onChange={setEnvironments}
      />
      <Restriction label="Agents" all="All agents" options={[]} value={null} error={undefined} onChange={none} />
    </div>
  );
}

interface Filters {
  status?: string | undefined;
  user?: string | undefined;
}

function FilterStates() {
  const [text, setText] = useState('');
  const [range, setRange] = useState<Range | undefined>('24h');
  const [filters, setFilters] = useState<Filters>({ status: 'failed' });
  const all: Filter[] = [
    {
      label: 'Status',
      value: filters.status,
      options: ['running', 'waiting', 'failed'].map((value) => ({ value, label: value })),
      onChange: (status) => setFilters((all) => ({ ...all, status })),
    },
    {
      label: 'End user',
      value: filters.user,
      placeholder: 'cus_1181',
      onChange: (user) => setFilters((all) => ({ ...all, user })),
    },
  ];
  return (
    <>
      <SavedViews
        name="system"
        views={[
          { label: 'All', search: {} },
          { label: 'Failed', search: { status: 'failed' } },
        ]}
        search={filters}
        onChoose={setFilters}
      />
      <FilterBar search={{ label: 'Search sessions', value: text, onChange: setText }} filters={all}>
        <TimeRange value={range} onChange={setRange} isOptional />
      </FilterBar>
      <FilterBar filters={all.map((filter) => ({ ...filter, value: undefined }))} />
    </>
  );
}
