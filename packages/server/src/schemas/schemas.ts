// JSON Schemas of third parties (authors of agents, MCP servers): checks schemas, and validates values against them.
//
// A few bytes are enough for a pattern that backtracks for hours, or for references that double at every level. Schemas are
// therefore evaluated in threads that can be stopped (threads.ts), never on the event loop. Schemas that are always cheap are
// evaluated at once: a node with only plain schemas starts no thread.
//
// Only this folder compiles third-party schemas; test/house.test.ts checks that.
import type { Strictness } from './check.ts';
import { judge, type Outcome, type Task } from './judge.ts';
import type { Problem } from './problem.ts';
import { runInThread } from './threads.ts';

type JsonSchema = Record<string, unknown>;

/** The limit for a schema of an MCP tool. */
const SCHEMA_MAX_BYTES = 128 * 1024;
/** The keywords whose evaluation can take more than linear time. */
const NEEDS_THREAD = /"(?:pattern|patternProperties|format|\$ref|\$dynamicRef|\$recursiveRef)":/;
/** The keywords that compare the items of a list with each other, or look at each several times. */
const COMPARES = /"(?:uniqueItems|contains|unevaluatedItems|unevaluatedProperties)":/;
const COMPARING = 20;
/** Characters of the schemas times those of their values, in total, that are evaluated without a thread: a few milliseconds. */
const WORK_AT_ONCE = 1_000_000;
const SCHEMA_AT_ONCE = 16_384;

/** The problems of each schema. All share a time limit of one second: a schema that is not reached counts as one that cannot be evaluated. */
export async function schemaProblems(
  organizationId: string,
  schemas: readonly { readonly schema: JsonSchema; readonly strictness: Strictness }[],
): Promise<(readonly Problem[])[]> {
  const tasks = schemas.map(({ schema, strictness }): Task => ({ ask: 'schema', schema: textOf(schema), strictness }));
  const small = tasks.filter(({ schema }) => Buffer.byteLength(schema) <= SCHEMA_MAX_BYTES);
  const outcomes = new Map(zip(small, await judgeAll(organizationId, small)));
  return tasks.map((task) => {
    const outcome = outcomes.get(task);
    if (outcome === undefined) return [{ path: '', message: `has more than ${SCHEMA_MAX_BYTES} bytes` }];
    return outcome ?? [{ path: '', message: 'cannot be evaluated as a JSON Schema' }];
  });
}

/** The schema of an input, and what must fit it: the rule of an approval, or paths such as `customer.id`. */
export type Fit =
  | { readonly inputSchema: JsonSchema; readonly rule: JsonSchema; readonly isForeign: boolean }
  | { readonly inputSchema: JsonSchema; readonly paths: readonly string[] };

/** What does not fit. All schemas must be without problems. With the same time limit. */
export async function fitProblems(organizationId: string, fits: readonly Fit[]): Promise<(readonly Problem[])[]> {
  const tasks = fits.map((fit): Task => {
    const schema = textOf(fit.inputSchema);
    return 'rule' in fit
      ? { ask: 'rule', schema, value: textOf(fit.rule), isForeign: fit.isForeign }
      : { ask: 'paths', schema, value: JSON.stringify(fit.paths) };
  });
  const outcomes = await judgeAll(organizationId, tasks);
  return outcomes.map((outcome) => outcome ?? [{ path: '', message: 'cannot be compared with the inputSchema' }]);
}

/** Whether the schema may be that of a tool's input. */
export function isOfObject({ type }: JsonSchema): boolean {
  return type === undefined || type === 'object';
}
export const NOT_OF_OBJECT = 'must be the schema of an object ("type": "object")';

/** A schema, and a JSON value to validate against it. */
export interface Evaluation {
  readonly schema: JsonSchema;
  readonly value: unknown;
}

/** The errors of each value, as text for the model; undefined if there are none. With the same time limit. */
export async function valueErrors(
  organizationId: string,
  evaluations: readonly Evaluation[],
): Promise<(string | undefined)[]> {
  const outcomes = await judgeAll(organizationId, evaluations.map(taskOf));
  return outcomes.map((outcome) => (outcome ? outcome[0]?.message : 'the schema cannot be evaluated for it'));
}

/** The errors of each input of a tool, as `valueErrors` gives them. */
export async function inputErrors(
  organizationId: string,
  evaluations: readonly Evaluation[],
): Promise<(string | undefined)[]> {
  const objects = evaluations.filter(({ value }) => isObject(value));
  const errors = new Map(zip(objects, await valueErrors(organizationId, objects)));
  return evaluations.map((one) => (errors.has(one) ? errors.get(one) : 'it must be a JSON object'));
}

/** Whether each value matches; also true if that can't be evaluated, so that an approval is requested. With the same time limit. */
export async function mayMatch(organizationId: string, evaluations: readonly Evaluation[]): Promise<boolean[]> {
  const outcomes = await judgeAll(organizationId, evaluations.map(taskOf));
  return outcomes.map((outcome) => outcome === null || outcome.length === 0);
}

async function judgeAll(organizationId: string, tasks: readonly Task[]): Promise<Outcome[]> {
  let room = WORK_AT_ONCE;
  const hard: Task[] = [];
  const outcomes = new Map<Task, Outcome>();
  for (const task of tasks) {
    const { schema } = task;
    const value = 'value' in task ? task.value : '';
    const work = schema.length * Math.max(1, value.length) * (COMPARES.test(schema) ? COMPARING : 1);
    if (work > room || schema.length > SCHEMA_AT_ONCE || NEEDS_THREAD.test(schema) || mayNeedThread(task)) {
      hard.push(task);
    } else {
      room -= work;
      outcomes.set(task, judge(task));
    }
  }
  if (hard.length > 0)
    for (const [task, outcome] of zip(hard, await runInThread(organizationId, hard))) outcomes.set(task, outcome);
  return tasks.map((task) => outcomes.get(task)!);
}

/** Patterns and references of a rule are evaluated as well. */
function mayNeedThread(task: Task): boolean {
  return task.ask === 'rule' && NEEDS_THREAD.test(task.value);
}

function taskOf({ schema, value }: Evaluation): Task {
  return { ask: 'value', schema: textOf(schema), value: JSON.stringify(value) };
}

/** An agent's schemas are used in every call, and never change. */
const texts = new WeakMap<JsonSchema, string>();

function textOf(schema: JsonSchema): string {
  const text = texts.get(schema) ?? JSON.stringify(schema);
  texts.set(schema, text);
  return text;
}

function zip<A, B>(as: readonly A[], bs: readonly B[]): [A, B][] {
  return as.map((a, index) => [a, bs[index]!]);
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
