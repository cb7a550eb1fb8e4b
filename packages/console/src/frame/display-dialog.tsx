import { chooseDensity, useDensity } from '../lib/density.ts';
import { chooseTimeSettings, type TimeSettings, useTimeSettings } from '../lib/time-settings.ts';
import { Button } from '../ui/button.tsx';
import { Dialog } from '../ui/dialog.tsx';
import { Select } from '../ui/field.tsx';
import { Segmented } from '../ui/segmented.tsx';
import { ownTimeZone, Time, timeZones } from '../ui/time.tsx';

const openedAt = new Date(performance.timeOrigin).toISOString();

/** How the person wants times and tables to be shown. A choice applies at once. */
export function DisplayDialog({ onClose }: { onClose: () => void }) {
  const density = useDensity();
  const settings = useTimeSettings();
  const zones = [...new Set(['UTC', ...timeZones()])];
  const choose = (change: Partial<TimeSettings>) => chooseTimeSettings({ ...settings, ...change });
  return (
    <Dialog title="Display" onClose={onClose}>
      <div className="stack">
        <Segmented
          label="Rows of tables"
          value={density}
          onChange={chooseDensity}
          options={[
            { value: 'compact', label: 'Compact' },
            { value: 'comfortable', label: 'Comfortable' },
          ]}
        />
        <Segmented
          label="Show times as"
          value={settings.style}
          onChange={(style) => choose({ style })}
          options={[
            { value: 'relative', label: 'Relative' },
            { value: 'absolute', label: 'Dates' },
          ]}
        />
        <Select
          label="Time zone"
          value={settings.zone ?? ''}
          onChange={(event) => {
            const { zone: _, ...rest } = settings;
            const zone = event.currentTarget.value;
            chooseTimeSettings(zone === '' ? rest : { ...rest, zone });
          }}
          options={[
            { value: '', label: `This browser’s: ${ownTimeZone()}` },
            ...zones.map((zone) => ({ value: zone, label: zone })),
          ]}
        />
        <p className="quiet">
          The console was opened <Time at={openedAt} />.
        </p>
      </div>
      <div className="foot">
        <Button look="primary" onClick={onClose}>
          Done
        </Button>
      </div>
    </Dialog>
  );
}
