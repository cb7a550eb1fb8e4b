// The log of `signalbox start` for a person at a terminal: one short line for each log line, with the fields that matter.
//
// Requests are most of the log, and the console and health checks make most of the requests. Those that succeed are left out, so that
// what the service did, and the console link above it, stay on the screen. The JSON format has everything.
import { styleText } from 'node:util';
import { shown } from './text.ts';

export interface LogTextOptions {
  color: boolean;
  /** Also the requests that are left out by default. */
  isVerbose: boolean;
}

interface LogLine {
  level: string;
  time: string;
  msg?: string;
  [field: string]: unknown;
}

interface LoggedError {
  type?: string;
  code?: string;
  message?: string;
  at?: string[];
  cause?: LoggedError;
}

const levelStyles = {
  fatal: 'red',
  error: 'red',
  warn: 'yellow',
  info: 'green',
  debug: 'dim',
  trace: 'dim',
} as const;

// In every line, or in other words in the message. The ids of a request are shown with its failure.
const HIDDEN = new Set(['level', 'time', 'msg', 'err', 'nodeId', 'requestId', 'callerRequestId', 'organizationId']);
const STACK_LINES = 4;

/** The text of a line of JSON, with a line break; undefined if it is left out. */
export function logText(json: string, options: LogTextOptions): string | undefined {
  let line: LogLine;
  try {
    line = JSON.parse(json) as LogLine;
  } catch {
    // Not a line of the logger. Nothing that is printed can control the terminal.
    return `${shown(json.trimEnd())}\n`;
  }
  const isRequest = line.msg === 'request' && typeof line.route !== 'undefined';
  if (isRequest && !options.isVerbose && isUninteresting(line)) return undefined;
  const { time, level, msg } = line;
  const style = levelStyles[level as keyof typeof levelStyles] ?? 'dim';
  const start = `${paint('dim', localTime(time), options)} ${paint(style, level.padEnd(5), options)}`;
  const rest = isRequest ? requestText(line, options) : `${shown(msg ?? '')}${fieldsText(line, options)}`;
  return `${start} ${rest}\n${errorText(line.err as LoggedError | undefined, options)}`;
}

const MONITORING = new Set(['/healthz', '/readyz', '/metrics']);

/** A request that succeeded, and that no program made to use the service. */
function isUninteresting({ route, method, status, actorId }: LogLine): boolean {
  if (Number(status) >= 400) return false;
  if (MONITORING.has(String(route))) return true;
  const isOfConsole = /^\/(console|docs|openapi\.json|$)/.test(String(route)) || String(actorId).startsWith('usr_');
  return isOfConsole && (method === 'GET' || method === 'HEAD');
}

/** `POST /api/v1/sessions 201 12 ms`; of a failure, also the id to search by. */
function requestText(line: LogLine, options: LogTextOptions): string {
  const { method, route, status, durationMs, requestId } = line;
  const code = Number(status);
  const style = code >= 500 ? 'red' : code >= 400 ? 'yellow' : 'green';
  const shownRoute = route === null ? '(no such route)' : shown(String(route));
  const what = `${shown(String(method))} ${shownRoute} ${paint(style, String(status), options)}`;
  const ids = code >= 400 ? ` ${shown(String(requestId))}` : '';
  return `${what}${paint('dim', ` ${durationMs} ms${ids}`, options)}`;
}

function fieldsText(line: LogLine, options: LogTextOptions): string {
  const fields = Object.entries(line).filter(([name, value]) => !HIDDEN.has(name) && value !== null);
  const words = fields.map(([name, value]) => ` ${shown(name)}=${shown(valueText(value))}`);
  return paint('dim', words.join(''), options);
}

/** Quoted only if it could be read in two ways. */
function valueText(value: unknown): string {
  if (Array.isArray(value) && value.every((item) => typeof item === 'string')) return valueText(value.join());
  return typeof value === 'string' && !/[\s"]/.test(value) ? value : JSON.stringify(value);
}

/** The error and its causes, each with the beginning of its stack. */
function errorText(error: LoggedError | undefined, options: LogTextOptions, before = ''): string {
  if (!error) return '';
  const { type = 'error', code, message, at = [], cause } = error;
  const name = code === undefined ? type : `${type} ${code}`;
  const what = message === undefined ? name : `${name}: ${message}`;
  const stack = at.slice(0, STACK_LINES).map((frame) => paint('dim', `        ${shown(frame)}\n`, options));
  return `      ${before}${shown(what)}\n${stack.join('')}${errorText(cause, options, 'caused by ')}`;
}

/** `14:03:09`, in the time zone of the terminal. */
function localTime(time: string): string {
  return new Date(time).toTimeString().slice(0, 8);
}

function paint(style: Parameters<typeof styleText>[0], text: string, { color }: LogTextOptions): string {
  return color && text !== '' ? styleText(style, text, { validateStream: false }) : text;
}
