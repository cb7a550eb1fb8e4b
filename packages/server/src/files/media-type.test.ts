import { randomBytes } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { encoded } from '../../test/support/charsets.ts';
import { pdf, png } from '../../test/support/files.ts';
import { createMediaTypeDetector, textDecoderOf } from './media-type.ts';

async function typeOf(bytes: Uint8Array, claimedType?: string, filename: string | null = null, chunkBytes = 64 * 1024) {
  const detector = createMediaTypeDetector({ claimedType, filename });
  for (let at = 0; at < bytes.length; at += chunkBytes) detector.add(bytes.subarray(at, at + chunkBytes));
  return await detector.detect();
}

describe('a table that is not UTF-8 is read in the charset in which it was written', () => {
  test.each([
    ['windows-1252', 'name;city\r\nZoë;Köln\r\n'],
    ['windows-1252', 'Artikel;Preis\r\nSchraube 5 m²;3,50 €\r\n„Müller“;1 €\r\n'],
    ['windows-1252', 'nom;prénom\r\nLefèvre;François\r\n'],
    ['windows-1252', 'Situação;Não\r\nSão Paulo;ção\r\n'],
    ['windows-1252', 'navn;by\r\nÆrø;Tromsø\r\n'],
    ['windows-1252', 'item,price\r\ntea,£5\r\nIt’s fine – really,£6\r\n'],
    ['windows-1252', 'MÜLLER;GRÖSSE\r\n'],
    ['windows-1252', 'It’s Bob’s “live” list — don’t…\r\n'.repeat(20)],
    ['windows-1252', 'time,20°C\r\n'],
    ['windows-1252', '¡Hola!\r\n'],
    ['windows-1252', 'Noël;château;île;België\r\n'],
    ['windows-1252', 'Škoda\r\n'],
    ['windows-1257', 'vardas;miestas\r\nJonas;Klaipėda;Šiauliai\r\n'],
    ['windows-874', 'ชื่อ;เมือง\r\nสมชาย;กรุงเทพ\r\n'],
    ['shift_jis', '名前,都市\r\n山田太郎,東京\r\n'],
    ['shift_jis', 'id,name,city\r\n1,coffee,東京\r\n2,コーヒー,大阪\r\n'],
    ['shift_jis', '表示,ソース,能力\r\n'],
    ['shift_jis', 'ﾔﾏﾀﾞ ﾀﾛｳ,ﾄｳｷｮｳ\r\n'],
    ['euc-jp', '名前,まち\r\n山田太郎,東京のコーヒー\r\n'],
    ['gb18030', '姓名,城市\r\n张三,北京\r\n'],
    ['big5', '姓名,城市\r\n張三,台北\r\n'],
    ['euc-kr', '이름,도시\r\n홍길동,서울\r\n'],
    ['windows-1250', 'imię;miasto\r\nŁukasz;Kraków\r\nŻółć;Łódź\r\n'],
    ['windows-1250', 'jméno;město\r\nJiří;Plzeň\r\n'],
    ['windows-1251', 'имя;город\r\nИван;Москва\r\n'],
    ['windows-1251', 'ФАМИЛИЯ;ИМЯ\r\n'],
    ['koi8-r', 'имя;город\r\nИван;Москва\r\n'],
    ['windows-1253', 'όνομα;πόλη\r\nΓιώργος;Αθήνα\r\n'],
    ['windows-1254', 'isim;şehir\r\nAyşe;İstanbul\r\n'],
    ['windows-1255', 'שם;עיר\r\nדוד;ירושלים\r\n'],
    ['windows-1256', 'اسم;مدينة\r\nمحمد;القاهرة\r\n'],
    ['macintosh', 'nom;prénom\r\nLefèvre;François\r\n'],
    ['utf-16le', '\ufeffname;city\r\nZoë;東京\r\n'],
    ['utf-16be', '\ufeffname;city\r\nZoë;東京\r\n'],
    ['utf-16le', 'name;city\r\nZoë;東京\r\n'],
    ['utf-16be', 'name;city\r\nZoë;東京\r\n'],
    ['utf-8', '\ufeffname;city\r\nZoë;東京\r\n'],
  ])('%s: %j', async (charset, text) => {
    const bytes = encoded(text, charset);
    for (const chunkBytes of [1, 7, 64 * 1024]) {
      const type = await typeOf(bytes, 'text/csv', null, chunkBytes);
      expect(textDecoderOf(type).decode(bytes), type).toBe(text.replace('\ufeff', ''));
      expect(type.split(';')[0]).toBe('text/csv');
    }
    // A bank exports more than a few lines, and what is special may come late.
    const long = Buffer.concat([encoded('1;2;3\r\n'.repeat(20_000), charset), bytes]);
    if (!text.startsWith('\ufeff')) expect(textDecoderOf(await typeOf(long, 'text/csv')).decode(long)).toContain(text);
  });
});

const latin = encoded('Zoë;Köln', 'windows-1252');
const koi8 = encoded('имя;Иван', 'koi8-r');
const japanese = encoded('東京', 'shift_jis');

test.each<[string, Uint8Array, string | undefined, string | null, string]>([
  ['the charset that is declared', koi8, 'text/csv; charset=KOI8-R', null, 'text/csv; charset=koi8-r'],
  ['one by another label', latin, 'text/csv;charset="latin1"', null, 'text/csv; charset=windows-1252'],
  [
    'one with escapes',
    Buffer.from('\x1b$B;3ED\x1b(B', 'latin1'),
    'text/plain; charset=iso-2022-jp',
    null,
    'text/plain; charset=iso-2022-jp',
  ],
  ['a declaration that is wrong', japanese, 'text/plain; charset=utf-8', null, 'text/plain; charset=shift_jis'],
  ['a declaration of UTF-8 text as Latin-1', Buffer.from('Köln'), 'text/csv; charset=iso-8859-1', null, 'text/csv'],
  ['an unknown charset', latin, 'text/csv; charset=x-unknown', null, 'text/csv; charset=windows-1252'],
  [
    'what an XML document says',
    Buffer.concat([Buffer.from('<?xml version="1.0" encoding="KOI8-R"?><a>'), koi8]),
    'application/xml',
    null,
    'application/xml; charset=koi8-r',
  ],
  [
    'what a page says',
    Buffer.concat([Buffer.from('<!doctype html><meta charset="windows-1252">'), latin]),
    'text/html',
    null,
    'text/html; charset=windows-1252',
  ],
  ['a type of Windows for CSV', latin, 'application/vnd.ms-excel', null, 'text/plain; charset=windows-1252'],
  ['a name of a text', latin, 'application/vnd.ms-excel', 'Table.CSV', 'text/plain; charset=windows-1252'],
  ['a byte order mark', encoded('\ufeffa b', 'utf-16le'), undefined, null, 'text/plain; charset=utf-16le'],
  ['UTF-8 that is cut', Buffer.from('Köln, Zürich, Malmö').subarray(0, -1), 'text/plain', null, 'text/plain'],
  [
    'the end of a file of DOS',
    Buffer.concat([latin, Buffer.of(0x1a)]),
    'text/csv',
    null,
    'text/csv; charset=windows-1252',
  ],
  [
    'letters of an image format',
    Buffer.concat([Buffer.from('BMW;'), latin]),
    'text/csv',
    null,
    'text/csv; charset=windows-1252',
  ],
])('text has the charset of: %s', async (_, bytes, claimed, filename, type) => {
  expect(await typeOf(bytes, claimed, filename)).toBe(type);
});

const UNKNOWN = 'application/octet-stream';
const noise = Buffer.from(randomBytes(4_000).filter((byte) => byte >= 0x20 && byte !== 0x7f));
test.each<[string, Uint8Array, string | undefined, string]>([
  ['bytes that are not claimed to be text', latin, undefined, UNKNOWN],
  ['bytes with control characters', Buffer.concat([latin, Buffer.of(1)]), 'text/csv', UNKNOWN],
  ['noise without control characters', Buffer.concat([noise, Buffer.of(0xff)]), 'text/csv', UNKNOWN],
  ['numbers of 16 bits', Buffer.from(Uint16Array.from({ length: 500 }, (_, n) => n + 300).buffer), 'text/csv', UNKNOWN],
  ['numbers of 32 bits', Buffer.from(Uint32Array.from({ length: 500 }, (_, n) => n + 32).buffer), 'text/csv', UNKNOWN],
  ['half a character of UTF-16', encoded('\ufeffname', 'utf-16le').subarray(0, -1), 'text/csv', UNKNOWN],
  [
    'a workbook of Excel',
    Buffer.concat([Buffer.from('d0cf11e0a1b11ae1', 'hex'), Buffer.alloc(512)]),
    'application/vnd.ms-excel',
    'application/x-cfb',
  ],
  ['an image', png, 'text/csv; charset=windows-1252', 'image/png'],
  ['a mark of UTF-16 by chance', Buffer.from([0xff, 0xfe, 0x41, 0x42, 0x43, 0x44]), undefined, UNKNOWN],
])('what is binary stays binary: %s', async (_, bytes, claimed, type) => {
  expect(await typeOf(bytes, claimed)).toBe(type);
});

const binaryPdf = Buffer.concat([pdf.subarray(0, 9), Buffer.from('%\xe2\xe3\xcf\xd3\n', 'latin1'), pdf.subarray(9)]);
const article = '# How a PDF begins\n\n%PDF-1.4\n';
test.each<[string, Uint8Array, string | undefined, string]>([
  ['a line break', Buffer.concat([Buffer.from('\r\n'), binaryPdf]), 'application/pdf', 'application/pdf'],
  ['a byte order mark', Buffer.concat([Buffer.from('\ufeff'), binaryPdf]), undefined, 'application/pdf'],
  [
    'the header of a printer',
    Buffer.concat([Buffer.from('\x1b%-12345X@PJL SET\r\n'), binaryPdf]),
    undefined,
    'application/pdf',
  ],
  ['the header of an old Macintosh', Buffer.concat([Buffer.alloc(128), binaryPdf]), undefined, 'application/pdf'],
  ['1019 bytes', Buffer.concat([Buffer.alloc(1016, 1), binaryPdf]), undefined, 'application/pdf'],
  ['more than 1024 bytes', Buffer.concat([Buffer.alloc(1025, 1), binaryPdf]), undefined, UNKNOWN],
  [
    'a header, and only ASCII',
    Buffer.concat([Buffer.from('\x1b%-12345X@PJL\n'), pdf]),
    'text/plain',
    'application/pdf',
  ],
  [
    'a header, and only ASCII, as a PDF',
    Buffer.concat([Buffer.from('HTTP\n'), pdf]),
    'application/pdf',
    'application/pdf',
  ],
  ['an article about it', Buffer.from(article), 'text/markdown', 'text/markdown'],
])('a PDF may begin after %s', async (_, bytes, claimed, type) => {
  expect(await typeOf(bytes, claimed)).toBe(type);
});

test.each(['heic', 'mif1', 'avif'])('an image of the brand %s is recognized', async (brand) => {
  const box = Buffer.from(`\0\0\0\x18ftyp${brand}\0\0\0\0mif1${brand}`, 'latin1');
  expect(await typeOf(box)).toBe({ heic: 'image/heic', mif1: 'image/heif', avif: 'image/avif' }[brand]);
});
