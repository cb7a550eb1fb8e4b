// Whose machine this is, as its firmware says. Only then is a metadata service asked: elsewhere, anyone in the network could answer at
// its address, and would get our prompts at an account of their own.
import { readFile } from 'node:fs/promises';

export type MachineCloud = 'aws' | 'azure' | 'google';

/** Azure's mark: other machines of Microsoft's hypervisor have another. */
const AZURE_CHASSIS = '7783-7084-3265-9085-8269-3286-77';

/** Undefined: another one, or it can't be known here, as in some sandboxes and outside of Linux. */
export async function readMachineCloud(directory = '/sys/class/dmi/id'): Promise<MachineCloud | undefined> {
  const read = (name: string) =>
    readFile(`${directory}/${name}`, 'utf8').then(
      (text) => text.trim(),
      () => '',
    );
  const [vendor, bios, chassis] = await Promise.all([
    read('sys_vendor'),
    read('bios_version'),
    read('chassis_asset_tag'),
  ]);
  // Older instances of EC2 run on Xen.
  if (vendor === 'Amazon EC2' || bios.endsWith('.amazon')) return 'aws';
  if (vendor === 'Google') return 'google';
  if (vendor === 'Microsoft Corporation' && chassis === AZURE_CHASSIS) return 'azure';
  return undefined;
}
