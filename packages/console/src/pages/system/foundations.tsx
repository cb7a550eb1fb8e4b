import { Avatar } from '../../ui/avatar.tsx';
import { Specimen } from './system.tsx';

const surfaces = ['sunken', 'background', 'surface', 'raised', 'hover', 'border', 'border-strong'] as const;
const states = ['running', 'waiting', 'ok', 'failed'] as const;
const series = [1, 2, 3, 4, 5, 6] as const;

export function Foundations() {
  return (
    <>
      <Specimen name="Colors">
        <div className="row">
          {surfaces.map((name) => (
            <div className={`swatch of-${name}`} key={name}>
              {name}
            </div>
          ))}
        </div>
        <div className="row">
          {states.map((name) => (
            <div className={`swatch of-${name}`} key={name}>
              {name}
            </div>
          ))}
          {series.map((number) => (
            <div className={`swatch of-chart-${number}`} key={number} role="img" aria-label={`chart ${number}`} />
          ))}
        </div>
      </Specimen>
      <Specimen name="Type">
        <div className="stack tight">
          <div className="type-title">Page title, 20 px</div>
          <div className="type-section">Section, 15 px</div>
          <p>
            Body, 13 px. <strong>Strong</strong>, <a href="#main">the list of sessions</a>, <code>code</code> and{' '}
            <kbd>K</kbd>.
          </p>
          <p className="quiet small">Secondary, 12 px. 0123456789</p>
          <p className="mono">
            refund_order ses_01m82mwmbpecvbd9b1c0jr5p69 {'{'}"amount": 42.5{'}'}
          </p>
          <p>Straße, œuvre, façade, naïve, Łódź, Ελλάδα, Київ, Tiếng Việt</p>
        </div>
      </Specimen>
      <Specimen name="Avatars">
        <div className="row">
          <Avatar name="Ana Alvarez" />
          <Avatar name="Bo" />
          <Avatar name="" />
        </div>
      </Specimen>
    </>
  );
}
