// Reads the syntax tree of a statement. The tree is libpg-query's: nodes are objects with one key, their kind.

export type Node = { [field: string]: unknown };

/** In a comparison that another node repeats, these could give different results. */
const UNSTABLE = /^(now|clock_timestamp|statement_timestamp|transaction_timestamp|random|gen_random_uuid|uuidv7)$/;

export function list(value: unknown): Node[] {
  return Array.isArray(value) ? (value as Node[]) : [];
}

export function kindOf(node: Node): [string, Node] {
  return (Object.entries(node)[0] ?? ['', {}]) as [string, Node];
}

export function nameOf(range: Node): string {
  return range.schemaname === undefined ? String(range.relname) : `${range.schemaname}.${range.relname}`;
}

export function aliasOf(range: Node): string {
  return String((range.alias as { aliasname?: string } | undefined)?.aliasname ?? range.relname);
}

export function columnNames(node: Node): string[] | undefined {
  const { fields } = (node.ColumnRef ?? {}) as { fields?: Node[] };
  return fields?.map((field) => (field.String as { sval?: string } | undefined)?.sval ?? '*');
}

export function operatorOf(expression: Node): string {
  return list(expression.name).map((name) => (name.String as { sval: string }).sval)[0] ?? '';
}

export function functionName(call: Node): string {
  return (list(call.funcname).at(-1)?.String as { sval: string } | undefined)?.sval ?? '';
}

/** A parameter, with a cast or without. */
export function isGiven(node: Node): boolean {
  const [kind, value] = kindOf(node);
  return kind === 'ParamRef' || (kind === 'TypeCast' && isGiven(value.arg as Node));
}

export function isUnstable(node: unknown): boolean {
  return (
    find(node, 'SQLValueFunction').length > 0 ||
    find(node, 'FuncCall').some((call) => UNSTABLE.test(functionName(call as Node)))
  );
}

/** Every value below `node` with this key. */
export function find(node: unknown, key: string): unknown[] {
  return [...kindsIn(node)].filter(([kind]) => kind === key).map(([, value]) => value);
}

export function* kindsIn(node: unknown): Generator<[string, Node]> {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node)) {
    if (typeof value !== 'object' || value === null) continue;
    yield [key, value as Node];
    yield* kindsIn(value);
  }
}

interface Subquery {
  query: Node;
  /** Whether the planner merges it into the query around it, so that what holds for its organization holds inside: not if it is
   * lateral or scalar. */
  isPulledUp: boolean;
  /** Whether the planner may join its tables with those of the query around it: not if it is a value, or an output of that query. */
  mayJoin: boolean;
}

/** The subqueries of a statement, but not those inside them, nor its common table expressions. */
export function* subqueriesIn(node: unknown, isPulledUp = true, mayJoin = true): Generator<Subquery> {
  if (typeof node !== 'object' || node === null) return;
  for (const [key, value] of Object.entries(node as Node)) {
    if (key === 'withClause') continue;
    if (key === 'SelectStmt') yield { query: { SelectStmt: value }, isPulledUp, mayJoin };
    else
      yield* subqueriesIn(
        value,
        isPulledUp && !isApart(key, value as Node),
        mayJoin && key !== 'targetList' && !isValue(key, value as Node),
      );
  }
}

function isApart(kind: string, value: Node): boolean {
  return kind === 'RangeSubselect' ? value.lateral === true : isValue(kind, value);
}

function isValue(kind: string, value: Node): boolean {
  return kind === 'SubLink' && ['EXPR_SUBLINK', 'ARRAY_SUBLINK'].includes(String(value.subLinkType));
}

/** `array(select …)` */
export function isArrayOfRows(node: Node): boolean {
  const [kind, value] = kindOf(node);
  return kind === 'SubLink' && value.subLinkType === 'ARRAY_SUBLINK';
}

/** The conditions that `and` joins. */
export function conjuncts(condition: Node | undefined): Node[] {
  if (!condition) return [];
  const [kind, value] = kindOf(condition);
  return kind === 'BoolExpr' && value.boolop === 'AND_EXPR' ? list(value.args).flatMap(conjuncts) : [condition];
}

/** `on true` is removed before planning. */
export function isConstant(condition: Node): boolean {
  return kindOf(condition)[0] === 'A_Const';
}

/** The joins of one `from`, but not those of its subqueries. */
export function* joinsIn(item: Node): Generator<Node> {
  const [kind, value] = kindOf(item);
  if (kind !== 'JoinExpr') return;
  yield value;
  for (const side of [value.larg, value.rarg]) yield* joinsIn(side as Node);
}

/** Its tables, but not those of its subqueries. */
export function rangesIn(item: Node): Node[] {
  const [kind, value] = kindOf(item);
  if (kind === 'JoinExpr') return [value.larg, value.rarg].flatMap((side) => rangesIn(side as Node));
  return kind === 'RangeVar' ? [value] : [];
}

export function aliasesIn(items: readonly Node[]): Set<string> {
  return new Set(
    items.flatMap((item): string[] => {
      const [kind, value] = kindOf(item);
      return kind === 'JoinExpr' ? [...aliasesIn([value.larg as Node, value.rarg as Node])] : [aliasOf(value)];
    }),
  );
}

/** Whether the condition contains a column of the query itself, or of one of these tables in a subquery. */
export function looksOutside(condition: Node, aliases: ReadonlySet<string>): boolean {
  const links = find(condition, 'SubLink') as Node[];
  const inLinks = new Set(links.flatMap((link) => find(link.subselect, 'ColumnRef')));
  return (
    find(condition, 'ColumnRef').some((column) => !inLinks.has(column)) || links.some((link) => looksAt(link, aliases))
  );
}

/** Whether it contains a column of one of these tables, by its alias. */
export function looksAt(node: unknown, aliases: ReadonlySet<string>): boolean {
  const columns = find(node, 'ColumnRef').map((column) => columnNames({ ColumnRef: column as Node }) ?? []);
  return columns.some((names) => names.length > 1 && aliases.has(names[0]!));
}
