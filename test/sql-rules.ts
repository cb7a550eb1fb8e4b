// The rules that let the same SQL run on one PostgreSQL and on one sharded by organization, as far as a syntax tree shows
// them:
//
//   - a tenant table (one with `organization_id`) is only reached with an organization: its column equals a parameter, or
//     that of another table in the statement which does. In a lateral or scalar subquery it equals a parameter itself: by the
//     organization of the row outside, the subquery would be sent to every shard
//   - tables without an organization, which are on one node, are in no outer join with a tenant table and in no subquery that
//     reads its columns: a common table expression reads them first
//   - next to an outer join, every condition has a column; one that has none is refused
//   - a tenant table is not reached by an array of organizations together with another array, because each element would be looked
//     up with each of the other. A lateral join over `unnest` looks up pairs
//   - a statement across organizations goes through `shards.query` or `shards.execute` (db/shards.ts), which can confine it to the
//     organizations of a server: confined, it follows the rules above, except the one about arrays. It reads or deletes, and takes no
//     row locks. So does an exception, which needs the whole installation
//   - a statement across organizations has no lateral subquery for each row of a union, of `values` or of a function
//   - `returning` names columns with their table, and has no subquery, clock or random value; neither clock nor random values are compared in `on conflict` or in a `set`
//   - nothing that works on one node only: advisory locks, sequences, `merge`, NOTIFY next to tables
//   - a DELETE by age has a limit: after a pause, one statement might not delete all old rows before its time-out
//   - a queue is not joined, nor in a subquery that the planner may turn into a join, unless its rows are given: it is mostly empty, and
//     so are its statistics, by which a join reads all of it for each row on the other side. A limit or a row lock keeps a subquery
//     from becoming a join
//   - rows are inserted from values, from a tenant table or from a CTE that reads one, not from bare arrays; values contain no subquery
//   - no row is named by its `ctid`, and no plan is forced to be generic on Citus, which refuses both
import { parseSync } from 'libpg-query';
import {
  aliasesIn,
  aliasOf,
  columnNames,
  conjuncts,
  find,
  functionName,
  isArrayOfRows,
  isConstant,
  isGiven,
  isUnstable,
  joinsIn,
  kindOf,
  kindsIn,
  list,
  looksAt,
  looksOutside,
  type Node,
  nameOf,
  operatorOf,
  rangesIn,
  subqueriesIn,
} from './sql-tree.ts';

/** How a statement may break the rules, and why; `like` is matched against its text with single spaces. */
export interface Exception {
  like: RegExp;
  reason: string;
}

interface Scope {
  /** Tables and derived tables whose organization is fixed. */
  fixed: Set<string>;
  /** Names of common table expressions, and whether each changes data. */
  ctes: Map<string, boolean>;
}

/**
 * How `shards.query` and `shards.execute` (db/shards.ts) send a statement: to all servers, or to one, confined to the organizations on it.
 */
export type Across = 'everywhere' | 'confined';

/** Tables that rows pass through, and the last column of their key. */
const QUEUES = new Map([
  ['pending_deliveries', 'delivery_id'],
  ['events_pending', 'event_id'],
]);
const ONE_NODE_ONLY = /^(nextval|currval|setval|lastval|pg_(try_)?advisory_.*)$/;
const COMPARISONS = new Set(['=', '<>', '!=', '<', '>', '<=', '>=']);

/** The violations of a statement; empty if there are none. Throws if it does not parse. */
export function problemsOf(
  text: string,
  { tenantTables, tables: allTables }: { tenantTables: ReadonlySet<string>; tables: ReadonlySet<string> },
  exceptions: readonly Exception[],
  across?: Across,
): string[] {
  const localTables = new Set([...allTables].filter((table) => !tenantTables.has(table)));
  const problems = new Set<string>();
  const spaced = text.replaceAll(/\s+/g, ' ').trim();
  const exception = exceptions.find(({ like }) => like.test(spaced));
  for (const { stmt } of parseSync(text).stmts as { stmt: Node }[]) {
    const crosses = new Set<string>();
    check(stmt, { fixed: new Set(), ctes: new Map() });
    const what = across === 'everywhere' ? 'a statement across organizations' : 'an exception';
    if (across === 'everywhere' || exception) {
      if (exception && crosses.size === 0) problems.add(`needs no exception: ${exception.reason}`);
      if (across && crosses.size === 0) problems.add('is not across organizations: use db.query');
      if (exception && across) problems.add(`is sent by db/shards.ts and needs no exception: ${exception.reason}`);
      if (find(stmt, 'lockingClause').length > 0) problems.add(`${what} must not lock rows`);
      if (find(stmt, 'UpdateStmt').length > 0) problems.add(`${what} must not update rows`);
      for (const select of find(stmt, 'SelectStmt')) checkPushDown(select as Node);
    } else {
      for (const table of crosses) problems.add(`${table}: without an organization`);
    }
    const reading = new Set(
      (find(stmt, 'CommonTableExpr') as Node[])
        .filter(
          ({ ctequery }) => (ctequery as Node).SelectStmt && namesIn(ctequery).some((name) => tenantTables.has(name)),
        )
        .map(({ ctename }) => ctename),
    );
    for (const [kind, value] of kindsIn(stmt)) checkNode(kind, value, reading);

    /** Checks one statement or subquery, in which `outer` is visible. `isPart`: the planner may join it with the query around it. */
    function check(node: Node, outer: Scope, isPart = false): void {
      const [kind, value] = kindOf(node);
      const mayJoin = isPart && !value.limitCount && !value.lockingClause;
      const scope: Scope = { fixed: new Set(outer.fixed), ctes: new Map(outer.ctes) };
      for (const cte of list((value.withClause as Node | undefined)?.ctes)) {
        const { ctename, ctequery } = cte.CommonTableExpr as { ctename: string; ctequery: Node };
        scope.ctes.set(ctename, kindOf(ctequery)[0] !== 'SelectStmt');
        check(ctequery, scope, kindOf(ctequery)[0] === 'SelectStmt');
      }
      if (kind === 'SelectStmt' && value.op !== 'SETOP_NONE') {
        for (const side of [value.larg, value.rarg]) check({ SelectStmt: side }, scope, isPart);
        return;
      }
      const tables = new Map<string, string>();
      const links: [string, string][] = [];
      /** By table, the columns that equal any of a given array; an organization that equals a single value is `one`. */
      const arrays = new Map<string, Set<string>>();
      const relation = value.relation as Node | undefined;
      if (relation && kind === 'InsertStmt') {
        const columns = list(value.cols).map((column) => (column.ResTarget as { name: string }).name);
        if (tenantTables.has(nameOf(relation)) && !columns.includes('organization_id')) crosses.add(nameOf(relation));
      } else if (relation) {
        addTable(relation);
      }
      for (const item of [...list(value.fromClause), ...list(value.usingClause)]) addItem(item);
      addConditions(value.whereClause as Node | undefined);
      settle();
      for (const [alias, table] of tables) {
        if (QUEUES.has(table) && (mayJoin || isJoined()) && !isLookedUp(alias, QUEUES.get(table)!)) {
          problems.add(`${table}: joined; look up its rows in a lateral subquery with a limit or with any(array(…))`);
        }
        if (!scope.fixed.has(alias)) crosses.add(table);
        const columns = arrays.get(alias) ?? new Set();
        if (!across && columns.has('organization_id') && !columns.has('one') && columns.size > 1)
          problems.add(`${table}: an array of organizations beside another is a cross product; look up pairs`);
      }
      for (const inner of subqueriesIn(value)) {
        check(inner.query, inner.isPulledUp ? scope : { ...scope, fixed: new Set() }, inner.mayJoin);
      }
      checkPlacement();

      /** Also by an `in` or an `exists`. */
      function isJoined(): boolean {
        const from = [...list(value.fromClause), ...list(value.usingClause)];
        const items = from.length + (kind === 'UpdateStmt' || kind === 'DeleteStmt' ? 1 : 0);
        const links = find(conjuncts(value.whereClause as Node | undefined), 'SubLink') as Node[];
        const isIn = links.some(({ subLinkType }) => /^(ANY|EXISTS)_SUBLINK$/.test(String(subLinkType)));
        return items > 1 || from.some((item) => kindOf(item)[0] === 'JoinExpr') || isIn;
      }

      /** Whether the column equals a parameter, or one of an array or a list. */
      function isLookedUp(alias: string, column: string): boolean {
        const isColumn = (side: Node) => {
          const names = columnNames(side) ?? [];
          return names.at(-1) === column && (names.length === 1 || names[0] === alias);
        };
        return conjuncts(value.whereClause as Node | undefined).some((condition) => {
          const [conditionKind, expression] = kindOf(condition);
          if (conditionKind !== 'A_Expr' || operatorOf(expression) !== '=') return false;
          const [left, right] = [expression.lexpr, expression.rexpr] as [Node, Node];
          if (isColumn(right)) return isGiven(left);
          return isColumn(left) && (expression.kind === 'AEXPR_IN' || isGiven(right) || isArrayOfRows(right));
        });
      }

      /** What a planner can't handle if it has to send the statement to one shard or several. */
      function checkPlacement(): void {
        const items = [...list(value.fromClause), ...list(value.usingClause)];
        const joins = items.flatMap((item) => [...joinsIn(item)]);
        const outer = joins.filter(({ jointype }) => jointype !== 'JOIN_INNER');
        for (const join of outer) {
          const names = rangesIn({ JoinExpr: join }).map(nameOf);
          if (!names.some((name) => tenantTables.has(name))) continue;
          for (const name of names)
            if (isLocal(name)) problems.add(`${name}: in an outer join, read it by a CTE first`);
        }
        if (tables.size === 0) return;
        const conditions = [value.whereClause, ...joins.map(({ quals }) => quals)].flatMap((one) =>
          conjuncts(one as Node),
        );
        if (outer.length > 0 && conditions.some((one) => !isConstant(one) && !looksOutside(one, aliasesIn(items)))) {
          problems.add('beside an outer join, a condition without a column');
        }
        for (const link of find([value.whereClause, value.targetList], 'SubLink') as Node[]) {
          const local = (find(link, 'RangeVar') as Node[]).map(nameOf).find((name) => isLocal(name));
          if (local && looksAt(link.subselect, new Set(tables.keys()))) {
            problems.add(`${local}: in a correlated subquery, read it by a CTE first`);
          }
        }
      }

      function isLocal(name: string): boolean {
        return localTables.has(name) && !scope.ctes.has(name);
      }

      function addTable(range: Node): void {
        const alias = aliasOf(range);
        if (scope.ctes.has(nameOf(range))) scope.fixed.add(alias);
        else if (tenantTables.has(nameOf(range))) {
          // In a subquery, the name of an outer table may refer to another one.
          scope.fixed.delete(alias);
          tables.set(alias, nameOf(range));
        }
      }

      function addItem(item: Node): void {
        const [itemKind, itemValue] = kindOf(item);
        if (itemKind === 'RangeVar') addTable(itemValue);
        if (itemKind === 'RangeSubselect') scope.fixed.add(aliasOf(itemValue));
        if (itemKind !== 'JoinExpr') return;
        addItem(itemValue.larg as Node);
        addItem(itemValue.rarg as Node);
        addConditions(itemValue.quals as Node | undefined);
        const using = list(itemValue.usingClause).map((name) => (name.String as { sval: string }).sval);
        const sides = [itemValue.larg, itemValue.rarg].map((side) => aliasOf(kindOf(side as Node)[1]));
        if (using.includes('organization_id')) links.push([sides[0]!, sides[1]!]);
      }

      /** Only conditions that hold for every row count, so none below an `or`. */
      function addConditions(condition: Node | undefined): void {
        if (!condition) return;
        const [conditionKind, expression] = kindOf(condition);
        if (conditionKind === 'BoolExpr' && expression.boolop === 'AND_EXPR') {
          for (const part of list(expression.args)) addConditions(part);
        }
        if (conditionKind !== 'A_Expr' || operatorOf(expression) !== '=') return;
        const sides = [expression.lexpr, expression.rexpr] as Node[];
        noteArray(expression.kind === 'AEXPR_OP_ANY', sides);
        const organizations = sides.map((side) => organizationIn(side));
        if (organizations[0] && organizations[1]) links.push([organizations[0], organizations[1]]);
        else if (organizations[0] && isGiven(sides[1]!)) scope.fixed.add(organizations[0]);
        else if (organizations[1] && isGiven(sides[0]!)) scope.fixed.add(organizations[1]);
      }

      function noteArray(isArray: boolean, [left, right]: Node[]): void {
        for (const side of [left!, right!]) {
          const names = columnNames(side);
          if (!names || (isArray && !isGiven(right!))) continue;
          const column = names.at(-1)!;
          if (!isArray && column !== 'organization_id') continue;
          const alias = names.length > 1 ? names[0]! : [...tables.keys()][0]!;
          const noted = arrays.get(alias) ?? new Set();
          arrays.set(alias, noted.add(isArray ? column : 'one'));
        }
      }

      /** The alias whose bare organization_id this is; with one visible table it may be unqualified. */
      function organizationIn(side: Node): string | undefined {
        const names = columnNames(side);
        if (names?.at(-1) !== 'organization_id') return undefined;
        return names.length > 1 ? names[0] : [...tables.keys()][0];
      }

      function settle(): void {
        for (let before = -1; before !== scope.fixed.size; ) {
          before = scope.fixed.size;
          for (const [a, b] of links) {
            if (scope.fixed.has(a)) scope.fixed.add(b);
            else if (scope.fixed.has(b)) scope.fixed.add(a);
          }
        }
      }
    }
  }
  return [...problems];

  /** What Citus can't send to every shard: a lateral subquery of a tenant table for each row of a union, of `values` or of a function. */
  function checkPushDown(select: Node): void {
    const sides = (item: Node): Node[] => {
      const [kind, value] = kindOf(item);
      return kind === 'JoinExpr' ? [value.larg, value.rarg].flatMap((side) => sides(side as Node)) : [item];
    };
    const items = list(select.fromClause).flatMap(sides).map(kindOf);
    const laterals = items.filter(([kind, value]) => kind === 'RangeSubselect' && value.lateral === true);
    if (!laterals.some(([, value]) => namesIn(value).some((name) => tenantTables.has(name)))) return;
    const isRows = ([kind, value]: [string, Node]) => {
      if (kind !== 'RangeSubselect') return kind === 'RangeFunction';
      const { op, valuesLists } = (value.subquery as Node).SelectStmt as Node;
      return op !== 'SETOP_NONE' || valuesLists !== undefined;
    };
    if (items.some(isRows)) {
      problems.add('a lateral subquery for each row of a union or a function: read them by separate subqueries');
    }
  }

  /** `reading`: the names of the common table expressions that read a tenant table. */
  function checkNode(kind: string, value: Node, reading: ReadonlySet<unknown>): void {
    if (kind === 'ColumnRef' && columnNames({ ColumnRef: value })?.at(-1) === 'ctid') {
      problems.add('ctid: name the row by its key');
    }
    if (kind === 'FuncCall' && forcesGenericPlan(value)) {
      problems.add('plan_cache_mode: Citus refuses generic plans; see planForLookups');
    }
    if (kind === 'MergeStmt') problems.add('merge is not for a sharded database');
    if (kind === 'FuncCall' && ONE_NODE_ONLY.test(functionName(value))) {
      problems.add(`${functionName(value)}: there is one on each node`);
    }
    if (['SelectStmt', 'InsertStmt', 'UpdateStmt', 'DeleteStmt'].includes(kind)) {
      const notifies = find(value, 'FuncCall').some((call) => functionName(call as Node) === 'pg_notify');
      if (notifies && find(value, 'RangeVar').length > 0) problems.add('pg_notify has to be a statement of its own');
    }
    if (kind === 'DeleteStmt' && isByAge(value) && !find(value, 'limitCount').length) {
      problems.add('a delete by age needs a limit: see deleteInBatches');
    }
    const { returningClause } = value as { returningClause?: { exprs?: Node[] } };
    if (isUnstable(returningClause)) problems.add('returning: read the clock by a statement of its own');
    if (find(returningClause, 'SubLink').length > 0)
      problems.add('returning: no subquery; read it by a statement of its own');
    for (const column of find(returningClause?.exprs ?? [], 'ColumnRef')) {
      if (list((column as Node).fields).length < 2) problems.add('returning: name the table of each column');
    }
    if (kind === 'InsertStmt') {
      const { onConflictClause: conflict } = value as { onConflictClause?: Node };
      if (conflict && isUnstable(conflict)) problems.add('on conflict: pass the instant as a parameter');
      const { valuesLists } = ((value.selectStmt as Node | undefined)?.SelectStmt ?? {}) as Node;
      if (tenantTables.has(nameOf(value.relation as Node)) && find(list(valuesLists), 'SubLink').length > 0) {
        problems.add('insert … values with a subquery: select it from a tenant table');
      }
      if (insertsFromArrays(value, reading)) problems.add('insert … select from bare arrays or from a changing CTE');
    }
    if (kind === 'UpdateStmt') {
      const comparisons = find(list(value.targetList), 'A_Expr') as Node[];
      if (comparisons.some((one) => COMPARISONS.has(operatorOf(one)) && isUnstable(one))) {
        problems.add('set: pass the instant that is compared with as a parameter');
      }
    }
  }

  /** Deletes rows by age rather than by key. */
  function isByAge(statement: Node): boolean {
    return (find(statement, 'A_Expr') as Node[]).some(
      (one) =>
        ['<', '<='].includes(operatorOf(one)) &&
        /_at$|^day$/.test(columnNames((one.lexpr ?? {}) as Node)?.at(-1) ?? ''),
    );
  }

  /** A `set_config` whose value may be a generic plan, and does not depend on whether Citus is loaded. */
  function forcesGenericPlan(call: Node): boolean {
    if (functionName(call) !== 'set_config') return false;
    const [name, value] = list(call.args).map((part) => constantsIn(part));
    const isSafe = value!.join() === 'force_custom_plan' || value!.some((text) => text.startsWith('citus.'));
    return name!.includes('plan_cache_mode') && !isSafe;
  }

  function constantsIn(part: Node): string[] {
    return (find(part, 'A_Const') as Node[]).map(({ sval }) => String((sval as { sval?: string } | undefined)?.sval));
  }

  function namesIn(node: unknown): string[] {
    return (find(node, 'RangeVar') as Node[]).map(nameOf);
  }

  function insertsFromArrays(insert: Node, reading: ReadonlySet<unknown>): boolean {
    const select = (insert.selectStmt as Node | undefined)?.SelectStmt as Node | undefined;
    const from = list(select?.fromClause);
    if (from.length === 0) return false;
    const ctes = list((insert.withClause as Node | undefined)?.ctes).map((cte) => cte.CommonTableExpr as Node);
    const changing = new Set(ctes.filter((cte) => !(cte.ctequery as Node).SelectStmt).map((cte) => cte.ctename));
    const names = namesIn(from);
    return (
      names.some((name) => changing.has(name)) || !names.some((name) => tenantTables.has(name) || reading.has(name))
    );
  }
}

/** The tables of a schema that have an organization, and the keys that do not begin with it. */
export function schemaOf(text: string): { tenantTables: Set<string>; tables: Set<string>; wrongKeys: string[] } {
  const tenantTables = new Set<string>();
  const tables = new Set<string>();
  const keys: { table: string; columns: string[] }[] = [];
  for (const { stmt } of parseSync(text).stmts as { stmt: Node }[]) {
    const [kind, value] = kindOf(stmt);
    const table = value.relation ? nameOf(value.relation as Node) : '';
    if (kind === 'IndexStmt' && value.unique) {
      const columns = list(value.indexParams).map((element) => String((element.IndexElem as Node).name));
      keys.push({ table, columns });
    }
    if (kind !== 'CreateStmt') continue;
    tables.add(table);
    for (const element of list(value.tableElts)) {
      const [elementKind, item] = kindOf(element);
      if (elementKind === 'ColumnDef' && item.colname === 'organization_id') tenantTables.add(table);
      for (const constraint of elementKind === 'ColumnDef' ? list(item.constraints) : [element]) {
        const { contype, keys: names, fk_attrs: own } = constraint.Constraint as Node;
        if (!['CONSTR_PRIMARY', 'CONSTR_UNIQUE', 'CONSTR_FOREIGN'].includes(String(contype))) continue;
        const columns = list(own ?? names).map((name) => (name.String as { sval: string }).sval);
        keys.push({ table, columns: columns.length > 0 ? columns : [String(item.colname)] });
      }
    }
  }
  const wrongKeys = keys
    .filter(({ table, columns }) => tenantTables.has(table) && columns[0] !== 'organization_id')
    .map(({ table, columns }) => `${table} (${columns.join(', ')})`);
  return { tenantTables, tables, wrongKeys };
}
