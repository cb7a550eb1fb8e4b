// A password must be long. There are no rules of composition: they make people write `Password1!`.
import { invalidField } from '../lib/api-error.ts';

const MIN_CHARACTERS = 12;
const MAX_CHARACTERS = 128;

// The most common leaked passwords of 12 characters or more, and patterns that people use to reach that length.
const COMMON = new Set(
  `123456789012 1234567890123 12345678901234 123456789012345 1234567890123456 123123123123 111111111111 000000000000
  012345678910 098765432109 987654321098 112233445566 123456123456 121212121212 123412341234 abcdefghijkl abcdef123456
  abc123abc123 a1b2c3d4e5f6 aaaaaaaaaaaa qwertyuiop12 qwertyuiop123 qwertyuiop1234 qwertyuiopas qwertyuiop[] qwertyqwerty
  qwerty123456 qwerty1234567 qwerty12345678 qwertyuiop1! 1qaz2wsx3edc 1qaz2wsx3edc4rfv 1q2w3e4r5t6y 1q2w3e4r5t6y7u
  1q2w3e4r5t6y7u8i zaq12wsxcde3 zxcvbnmasdfghjkl zxcvbnm12345 asdfghjkl123 asdfasdfasdf asdfghjklasd asdfghjkl;'
  password1234 password12345 password123456 password123! password1234! password2024 password2025 password2026
  passwordpassword mypassword123 mypassword12 passw0rd1234 p@ssw0rd1234 p@ssword1234 passwort1234 passwort12345
  motdepasse123 contrasena123 senha1234567 adminadmin12 adminadminadmin administrator administrator1 administrator123
  admin1234567 admin12345678 changemenow1 changeme1234 changeme12345 changemechangeme letmeinletmein letmein12345
  letmein123456 welcome12345 welcome123456 welcome2025! welcomewelcome iloveyou1234 iloveyou12345 iloveyouiloveyou
  iloveyousomuch iloveyouforever ihateyou1234 football1234 baseball1234 basketball12 superman1234 superman12345
  dragon123456 monkey123456 sunshine1234 sunshine12345 princess1234 princess12345 pokemon12345 starwars1234
  trustno1trustno1 michael12345 jennifer1234 liverpool123 liverpool1234 manchester12 chelsea12345 arsenal12345
  correcthorsebatterystaple correct horse battery staple thisisapassword thisismypassword nopasswordhere secretsecret
  secretpassword secret123456 supersecret1 supersecret123 testtesttest test12345678 testpassword testing12345 temporary123
  signalbox123 signalbox1234 signalboxsignalbox`
    .split(/\s+/)
    .concat('correct horse battery staple', 'let me in please', 'this is my password'),
);

/** Throws 400 that names `field` and the rule. */
export function requireGoodPassword(
  password: string,
  { email, name }: { email: string; name: string },
  field = 'password',
): void {
  const plain = password.toLowerCase();
  const isPersonal = [email, email.split('@')[0]!, name].some((text) => {
    const lower = text.toLowerCase().trim();
    return lower.length > 0 && (plain === lower || plain === lower.repeat(2));
  });
  if ([...password].length < MIN_CHARACTERS)
    throw invalidField(field, `must have at least ${MIN_CHARACTERS} characters`);
  if (password.length > MAX_CHARACTERS) throw invalidField(field, `must have at most ${MAX_CHARACTERS} characters`);
  if (isPersonal) throw invalidField(field, 'must not be your email or name');
  if (COMMON.has(plain) || new Set(plain).size < 4) throw invalidField(field, 'is too easy to guess. Choose another');
}
