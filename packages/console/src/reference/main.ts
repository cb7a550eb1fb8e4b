// The API reference at /docs, and in the site of the documentation: Scalar (decision 44) over openapi.json. Nothing is loaded from another host, and what
// the reader types stays in this page's memory.
import scalarUrl from 'virtual:scalar';
import { chosenTheme } from '../lib/theme.ts';
import { isCodeIn, nameIn, scrollToCode, slugOf } from './anchors.ts';
import type { OpenApiDocument } from './document.ts';
import './reference.css';

interface Scalar {
  createApiReference(selector: string, configuration: object): unknown;
}

declare global {
  interface Window {
    Scalar: Scalar;
  }
}

// The service puts it into its page. The copy of the page in the documentation's site has no service to send requests to.
const nonce = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]')?.content;
const service = nonce === undefined ? 'http://127.0.0.1:4500' : location.origin;

await open().catch(() => {
  document.body.textContent = 'The reference could not be loaded. Reload the page to try again.';
});

async function open(): Promise<void> {
  if (nonce !== undefined) giveNonces(nonce);
  const [content] = await Promise.all([readDocument(), loadScalar()]);
  const wanted = nameIn(location.hash) ?? '';
  // Scalar would throw.
  if (nameIn(location.hash) === undefined) history.replaceState(null, '', location.pathname);
  const isCode = isCodeIn(content, wanted);
  const slug = isCode ? 'description/errors' : slugOf(content, wanted);
  if (slug) history.replaceState(null, '', `#${slug}`);
  const theme = chosenTheme();
  document.querySelector('.loading')!.remove();
  window.Scalar.createApiReference('#reference', {
    content,
    servers: [{ url: service, description: nonce === undefined ? 'Your service' : 'This service' }],
    hideTestRequestButton: nonce === undefined,
    theme: 'none',
    ...(theme !== 'system' && { darkMode: theme === 'dark' }),
    // Signed-in readers have a cookie; a request to try has only the key that the reader typed, and goes nowhere else.
    customFetch: sameOriginFetch,
    persistAuth: false,
    telemetry: false,
    withDefaultFonts: false,
    agent: { disabled: true },
    mcp: { disabled: true },
    showDeveloperTools: 'never',
    hideClientButton: true,
    documentDownloadType: 'json',
    modelsSectionLabel: 'Objects',
    hiddenClients,
    featuredClients: ['shell/curl', 'python/requests'],
  });
  if (isCode) scrollToCode(wanted);
  // A link to another short name in a page that is open. Scalar follows only its own fragments, once, when it starts.
  addEventListener('hashchange', () => {
    const name = nameIn(location.hash) ?? '';
    if (isCodeIn(content, name) || slugOf(content, name)) location.reload();
  });
}

/** With the address of this service in the sample programs. */
async function readDocument(): Promise<OpenApiDocument> {
  const response = await fetch('/openapi.json');
  if (!response.ok) throw new Error(`openapi.json: ${response.status}`);
  const text = await response.text();
  if (nonce === undefined) return JSON.parse(text);
  return JSON.parse(text.replaceAll('new Signalbox()', `new Signalbox({ baseUrl: '${service}' })`));
}

function loadScalar(): Promise<void> {
  return new Promise((resolve, reject) => {
    const script = document.createElement('script');
    script.src = scalarUrl;
    script.onload = () => resolve();
    script.onerror = () => reject(new Error('Scalar could not be loaded'));
    document.head.append(script);
  });
}

/** Scalar creates some of its style sheets without the nonce that the policy asks for. */
function giveNonces(nonce: string): void {
  const create = document.createElement.bind(document);
  document.createElement = (name: string, options?: ElementCreationOptions) => {
    const element = create(name, options);
    if (element instanceof HTMLStyleElement) element.nonce = nonce;
    return element;
  };
}

async function sameOriginFetch(input: string | URL | Request, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  if (new URL(request.url).origin !== location.origin) throw new TypeError('Requests go to this service only.');
  return await fetch(request, { credentials: 'omit' });
}

/** Beside the TypeScript programs of the document there are curl and Python. */
const hiddenClients = {
  ...Object.fromEntries(
    'c clojure csharp dart fsharp go http java js julia kotlin node objc ocaml php powershell r ruby rust swift'
      .split(' ')
      .map((language) => [language, true]),
  ),
  shell: ['wget', 'httpie'],
  python: ['python3', 'httpx_async', 'httpx_sync', 'aiohttp'],
};
