// `signalbox doctor`: what is wrong with an installation.
import type { Finding } from '@signalbox/server';
import { command } from '../command.ts';
import type { Style } from '../terminal.ts';
import { shownLines } from '../text.ts';
import { dataDir } from './backup.ts';

const marks: Readonly<Record<Finding['status'], readonly [string, Style]>> = {
  ok: ['ok', 'green'],
  warning: ['warning', 'yellow'],
  failed: ['failed', 'red'],
  skipped: ['skipped', 'dim'],
};

const doctor = command({
  name: '',
  summary: 'Check an installation, and say what is wrong and how to fix it',
  details:
    'Run it on the host of a node, with the settings of that node. It works while the service runs, and if it does not start. It changes ' +
    'nothing. The exit status is 1 if a check failed; warnings do not count. See docs/operations/doctor.md.',
  options: {
    online: { type: 'boolean', about: "also ask model providers whether they accept the service's keys" },
    'data-dir': dataDir,
    json: { type: 'boolean', about: 'print one JSON object per line' },
  },
  variables: {
    SIGNALBOX_API_KEY: {
      about: 'a key with read: also check that streams arrive at once through SIGNALBOX_PUBLIC_URL',
    },
  },
  examples: [['doctor', 'with the settings in the environment']],
  async run({ values, terminal }) {
    const { examine } = await import('@signalbox/server');
    const { stdout, env } = terminal;
    const print = (finding: Finding) => void stdout.write(values.json ? `${JSON.stringify(finding)}\n` : text(finding));
    const text = ({ check, status, message, fix }: Finding) => {
      const [mark, style] = marks[status];
      const line = `${stdout.styled(style, mark.padEnd(8))} ${check.padEnd(22)} ${shownLines(message)}\n`;
      return fix === undefined ? line : `${line}${' '.repeat(32)}${shownLines(fix)}\n`;
    };
    const wish = { online: values.online, apiKey: env.SIGNALBOX_API_KEY || undefined };
    const findings = await examine({ 'data-dir': values['data-dir'] }, wish, print);
    const count = (wanted: Finding['status']) => findings.filter(({ status }) => status === wanted).length;
    const [failures, warnings] = [count('failed'), count('warning')];
    if (!values.json)
      await stdout.write(
        failures + warnings === 0 ? '\nNothing is wrong.\n' : `\nFailed: ${failures}. Warnings: ${warnings}.\n`,
      );
    return failures > 0 ? 1 : 0;
  },
});

export const commands = [doctor];
