import { describe, expect, test } from 'vitest';
import { destinationOf, type EgressPolicy, judgeAddress, judgeUrl, parseEgressAllow } from './policy.ts';

const nothingListed = parseEgressAllow('');

function verdict(policy: EgressPolicy, url: string): string {
  const judgement = judgeUrl(policy, url);
  return judgement.ok ? 'allowed' : judgement.reason;
}

/** Each must be refused by its url alone where the operator listed nothing. */
const HOSTILE_URLS = [
  // Schemes and shapes.
  ['', 'http://example.com/', 'http://8.8.8.8/', 'HTTP://example.com/', 'ftp://example.com/', 'file:///etc/passwd'],
  [
    'gopher://example.com/',
    'data:text/plain,x',
    'javascript:alert(1)',
    'ws://example.com/',
    'unix:/var/run/docker.sock',
  ],
  [
    '//example.com/',
    'example.com',
    'https:example.com',
    'https:/example.com',
    'https:///example.com',
    'https://',
    'https:',
  ],
  [
    'https://?x',
    'https://#x',
    'https://:443/',
    'https://example.com:0/',
    'https://example.com:65536/',
    'https://example.com:x/',
  ],
  ['blob:https://example.com/x', 'view-source:https://example.com/', 'jar:https://example.com!/'],
  // Texts that parsers read differently.
  [
    ' https://example.com/',
    'https://example.com/ ',
    '\thttps://example.com/',
    'https://exam\nple.com/',
    'https://example.com\\@127.0.0.1/',
  ],
  [
    'https:\\\\example.com\\',
    'https://example.com/\r\nHost: x',
    'https://example.com/\u0000',
    'ht\ttps://example.com/',
    'https://example.com /',
  ],
  ['https://user@example.com/', 'https://user:pass@example.com/', 'https://@example.com/', 'https://:@example.com/'],
  [
    'https://example.com@127.0.0.1/',
    'https://127.0.0.1#@example.com/',
    'https://example.com/#fragment',
    'https://example.com/#',
  ],
  [`https://example.com/${'x'.repeat(8192)}`],
  // Loopback and "this host".
  [
    'https://127.0.0.1/',
    'https://127.0.0.1:8443/',
    'https://127.1/',
    'https://127.0.1/',
    'https://127.255.255.254/',
    'https://0/',
  ],
  [
    'https://2130706433/',
    'https://0x7f000001/',
    'https://0x7f.0.0.1/',
    'https://0x7f.1/',
    'https://0177.0.0.1/',
    'https://017700000001/',
  ],
  [
    'https://0x7F.0X0.0x0.0x1/',
    'https://0000000177.1/',
    'https://127.0.0.1./',
    'https://0.0.0.0/',
    'https://0.1.2.3/',
    'https://0x0/',
  ],
  [
    'https://%31%32%37.0.0.1/',
    'https://127%2e0%2e0%2e1/',
    'https://１２７.０.０.１/',
    'https://①②⑦.⓪.⓪.①/',
    'https://127。0。0。1/',
  ],
  [
    'https://127.0.0\u00ad.1/',
    'https://localhost/',
    'https://LOCALHOST/',
    'https://localhost./',
    'https://foo.localhost/',
    'https://ｌocalhost/',
  ],
  // Private, shared, link-local, special and reserved IPv4.
  [
    'https://10.0.0.1/',
    'https://10.1/',
    'https://0xa000001/',
    'https://167772161/',
    'https://172.16.0.1/',
    'https://172.31.255.255/',
  ],
  [
    'https://192.168.1.1/',
    'https://192.168.257/',
    'https://3232235777/',
    'https://100.64.0.1/',
    'https://100.100.100.200/',
  ],
  [
    'https://169.254.169.254/latest/meta-data/',
    'https://2852039166/',
    'https://0xa9fea9fe/',
    'https://0251.0376.0251.0376/',
    'https://169.254.43518/',
  ],
  [
    'https://168.63.129.16/',
    'https://192.0.0.192/',
    'https://192.0.2.1/',
    'https://198.18.0.1/',
    'https://198.51.100.1/',
    'https://203.0.113.1/',
  ],
  [
    'https://192.88.99.1/',
    'https://224.0.0.1/',
    'https://239.255.255.255/',
    'https://240.0.0.1/',
    'https://255.255.255.255/',
    'https://4294967295/',
  ],
  // Not addresses at all.
  [
    'https://256.256.256.256/',
    'https://1.2.3.4.5/',
    'https://4294967296/',
    'https://0x100000000/',
    'https://1.2.3.09/',
    'https://127.0.0.1..',
  ],
  // IPv6 of its own.
  [
    'https://[::1]/',
    'https://[0:0:0:0:0:0:0:1]/',
    'https://[0000::0001]/',
    'https://[::]/',
    'https://[fe80::1]/',
    'https://[fe80::1%25eth0]/',
  ],
  [
    'https://[fe80::1%eth0]/',
    'https://[febf::1]/',
    'https://[fc00::1]/',
    'https://[fd00:ec2::254]/',
    'https://[fec0::1]/',
    'https://[ff02::1]/',
  ],
  [
    'https://[100::1]/',
    'https://[2001:db8::1]/',
    'https://[3fff::1]/',
    'https://[5f00::1]/',
    'https://[2001:2::1]/',
    'https://[2001:10::1]/',
  ],
  ['https://[4000::1]/', 'https://[::1', 'https://::1/', 'https://[::1]extra/', 'https://[v1.x]/', 'https://[]/'],
  // IPv4 in IPv6.
  [
    'https://[::ffff:127.0.0.1]/',
    'https://[::ffff:7f00:1]/',
    'https://[::FFFF:10.0.0.1]/',
    'https://[0:0:0:0:0:ffff:a9fe:a9fe]/',
  ],
  [
    'https://[::127.0.0.1]/',
    'https://[::7f00:1]/',
    'https://[::8.8.8.8]/',
    'https://[::ffff:0:127.0.0.1]/',
    'https://[::ffff:0:8.8.8.8]/',
  ],
  [
    'https://[64:ff9b::127.0.0.1]/',
    'https://[64:ff9b::a9fe:a9fe]/',
    'https://[64:ff9b:1::1]/',
    'https://[64:ff9b:1::8.8.8.8]/',
  ],
  [
    'https://[2002:7f00:1::]/',
    'https://[2002:a9fe:a9fe::1]/',
    'https://[2002:808:808::1]/',
    'https://[2001::1]/',
    'https://[2001:0:808:808::1]/',
  ],
  // Names.
  [
    'https://intranet/',
    'https://metadata/',
    'https://example.com./',
    'https://example..com/',
    'https://.example.com/',
    'https://-/',
  ],
  [
    'https://exa mple.com/',
    'https://example.com%00.evil.com/',
    'https://example.com%2f.evil.com/',
    'https://exam$ple.com/',
    'https://a,b.com/',
  ],
  [`https://${'a'.repeat(64)}.com/`, `https://${'a.'.repeat(130)}com/`, 'https://xn--/', 'https://*.example.com/'],
].flat();

describe('a url is refused before anything is looked up', () => {
  test('the table is worth its name', () => {
    expect(new Set(HOSTILE_URLS).size).toBe(HOSTILE_URLS.length);
    expect(HOSTILE_URLS.length).toBeGreaterThan(120);
  });

  test.each(HOSTILE_URLS.map((url) => [url.length > 60 ? `${url.slice(0, 60)}…` : url, url]))('%j', (_shown, url) => {
    expect(verdict(nothingListed, url)).not.toBe('allowed');
  });

  test.each([
    'https://example.com',
    'https://example.com/hooks?a=b&c=%2F',
    'HTTPS://Example.COM:8443/',
    'https://hooks_2.example.co.uk/',
    'https://bücher.example/',
    'https://xn--bcher-kva.example/',
    'https://8.8.8.8/',
    'https://0x08080808/',
    'https://[2606:4700:4700::1111]/',
    'https://[::ffff:8.8.8.8]/',
    'https://[64:ff9b::8.8.8.8]/',
    'https://example.com/@handle?at=@',
    'https://localhost.example.com/',
    'https://127.0.0.1.example.com/',
  ])('%s is public and passes', (url) => {
    expect(verdict(nothingListed, url)).toBe('allowed');
  });
});

describe('the operator’s rules allow what they list, and no more', () => {
  test.each([
    // An address rule opens the addresses to any spelling, and to http.
    ['10.0.0.0/8', 'https://10.1.2.3/', true],
    ['10.0.0.0/8', 'http://10.1.2.3/', true],
    ['10.0.0.0/8', 'http://0xa010203/', true],
    ['10.0.0.0/8', 'https://[::ffff:10.1.2.3]/', true],
    ['10.0.0.0/8', 'https://11.0.0.1/', true],
    ['10.0.0.0/8', 'http://11.0.0.1/', false],
    ['10.0.0.0/8', 'https://127.0.0.1/', false],
    ['192.168.1.5', 'https://192.168.1.5/', true],
    ['192.168.1.5', 'https://192.168.1.6/', false],
    ['fd00::/8', 'http://[fd12::1]:3000/', true],
    ['fd00::/8', 'http://[fe80::1]/', false],
    ['8.8.8.8', 'http://8.8.8.8/', true],
    ['169.254.169.254', 'http://169.254.169.254/', true],
    // What clouds hand credentials out at is opened by its own address alone.
    ['169.254.0.0/16', 'http://169.254.169.254/', false],
    ['169.254.0.0/16', 'http://169.254.1.1/', true],
    ['100.64.0.0/10', 'http://100.100.100.200/', false],
    ['100.64.0.0/10', 'http://100.100.100.201/', true],
    ['169.254.0.0/16', 'http://169.254.170.2/', false],
    ['169.254.170.0/24', 'http://169.254.170.23/', false],
    ['fd00::/8', 'http://[fd00:ec2::254]/', false],
    ['fd00:ec2::/32', 'http://[fd00:ec2::23]/', false],
    ['fd00:ec2::254', 'http://[fd00:ec2::254]/', true],
    ['fd00::/8', 'http://[fd00:c1::a9fe:a9fe]/', false],
    ['fd00::/8', 'http://[fd00:42::42]/', false],
    ['169.254.0.0/16', 'http://169.254.42.42/', false],
    ['169.254.0.0/16', 'http://169.254.0.23/', false],
    ['0.0.0.0/0', 'http://[::1]/', false],
    // Ports.
    ['10.0.0.5:8080', 'http://10.0.0.5:8080/', true],
    ['10.0.0.5:8080', 'http://10.0.0.5/', false],
    ['10.0.0.5:80', 'http://10.0.0.5/', true],
    ['[::1]:9000', 'http://[::1]:9000/', true],
    ['[::1]:9000', 'http://[::1]:9001/', false],
    ['[fd00::/8]:9000', 'http://[fd00::5]:9000/', true],
    ['hooks.internal:8443', 'https://hooks.internal:8443/', true],
    ['hooks.internal:8443', 'http://hooks.internal:8444/', false],
    // Host rules.
    ['ollama', 'http://ollama:11434/', true],
    ['ollama', 'http://ollama.evil.com/', false],
    ['*.example.com', 'http://a.example.com/', true],
    ['*.example.com', 'http://a.b.example.com/', true],
    ['*.example.com', 'http://example.com/', false],
    ['*.example.com', 'http://badexample.com/', false],
    ['Bücher.Example', 'http://xn--bcher-kva.example/', true],
    ['localhost', 'http://localhost:9000/', true],
    ['localhost', 'http://127.0.0.1:9000/', false],
    // A name that is not listed may lead to a listed address, which its connection will tell.
    ['10.0.0.0/8', 'http://tool.example.com/', true],
    ['10.0.0.0/8', 'http://tool/', true],
    ['10.0.0.0/8:8080', 'http://tool:9090/', false],
    ['ollama', 'http://tool.example.com/', false],
    ['127.0.0.0/8', 'http://localhost:9000/', true],
    ['::1', 'http://x.localhost:9000/', true],
    ['10.0.0.0/8', 'http://localhost:9000/', false],
    // What no list opens.
    ['10.0.0.0/8', 'ftp://10.0.0.1/', false],
    ['10.0.0.0/8', 'http://user@10.0.0.1/', false],
  ])('%s and %s: %s', (allow, url, allowed) => {
    expect(verdict(parseEgressAllow(allow), url) === 'allowed').toBe(allowed);
  });
});

describe('addresses in the notation of DNS and sockets', () => {
  const at = (url: string) => destinationOf(new URL(url));

  test.each([
    ['', 'https://a.example.com/', '93.184.216.34', true],
    ['', 'https://a.example.com/', '2606:4700::1', true],
    ['', 'https://a.example.com/', '10.0.0.1', false],
    ['', 'https://a.example.com/', '::ffff:10.0.0.1', false],
    ['', 'https://a.example.com/', '64:ff9b::a00:1', false],
    ['', 'https://a.example.com/', '64:ff9b::808:808', true],
    ['', 'https://a.example.com/', 'fe80::1%eth0', false],
    ['', 'https://a.example.com/', '2606:4700::1%eth0', false],
    ['', 'https://a.example.com/', '0177.0.0.1', false],
    ['', 'https://a.example.com/', 'unknown', false],
    ['10.0.0.0/8', 'http://a.example.com/', '10.0.0.1', true],
    ['10.0.0.0/8', 'http://a.example.com/', '93.184.216.34', false],
    ['10.0.0.0/8', 'https://a.example.com/', '93.184.216.34', true],
    ['10.0.0.0/8:8080', 'https://a.example.com/', '10.0.0.1', false],
    ['a.example.com', 'http://a.example.com/', '10.0.0.1', true],
    ['a.example.com', 'http://a.example.com/', '93.184.216.34', true],
    ['a.example.com', 'http://a.example.com/', '127.0.0.1', true],
    ['a.example.com', 'https://b.example.com/', '10.0.0.1', false],
  ])('%s, %s at %s: %s', (allow, url, address, allowed) => {
    expect(judgeAddress(parseEgressAllow(allow), address, at(url)).ok).toBe(allowed);
  });

  test.each([
    '169.254.169.254',
    'fe80::1',
    '0.0.0.0',
    '::',
    '224.0.0.1',
    '255.255.255.255',
    '168.63.129.16',
    '100.100.100.200',
    '192.0.0.192',
    '169.254.170.2',
    '169.254.170.23',
    'fd00:ec2::254',
    'fd00:ec2::23',
    'fd20:ce::254',
    'fd00:c1::a9fe:a9fe',
    'fd00:42::42',
    '::ffff:100.100.100.200',
  ])('a listed host may not lead to %s, where clouds keep credentials and nothing ordinary lives', (address) => {
    expect(judgeAddress(parseEgressAllow('*.example.com'), address, at('https://a.example.com/')).ok).toBe(false);
  });
});

describe('SIGNALBOX_EGRESS_ALLOW', () => {
  test.each([
    '10.1.2.3/8',
    '10.0.0.0/33',
    '10.0.0.0/',
    '10.0.0.0/8/8',
    '10.0.0/8',
    '10.1',
    '010.0.0.1',
    '0x7f000001',
    '2130706433',
    'x.0x1',
    'http://localhost:80',
    'localhost:0',
    'localhost:65536',
    'localhost:http',
    'localhost:',
    '[localhost]:80',
    '[::1',
    '::1:x',
    'fe80::1%eth0',
    '::ffff:10.0.0.1',
    '64:ff9b::/96',
    '*',
    '*.',
    'a.*.example.com',
    'user@example.com',
    'a b',
    'example..com',
    '10.0.0.1-10.0.0.9',
  ])('%s is refused, and named', (entry) => {
    expect(() => parseEgressAllow(`127.0.0.1, ${entry}`)).toThrow(`"${entry}"`);
  });

  test('empty entries and spaces are nothing', () => {
    expect(parseEgressAllow(' , ,')).toEqual(parseEgressAllow(''));
    expect(parseEgressAllow(' a.example.com ,10.0.0.0/8,').hosts).toHaveLength(1);
  });
});
