// Splits a script into commands that Citus accepts for distributed tables: it refuses a request with several commands, and most commands
// with several changes of a table.

// A part of a script in which a semicolon or a comma separates nothing, or a single character.
const PARTS = [
  /--[^\n]*/,
  /\/\*[\s\S]*?\*\//,
  // With backslash escapes; plain; the name of something; the body of a function.
  /\b[eE]'(?:[^'\\]|\\[\s\S]|'')*'/,
  /'(?:[^']|'')*'/,
  /"(?:[^"]|"")*"/,
  /(?<dollar>\$(?:[A-Za-z_]\w*)?\$)[\s\S]*?\k<dollar>/,
  /\w+/,
  /[\s\S]/,
];
const PART = new RegExp(PARTS.map(({ source }) => source).join('|'), 'g');
const COMMENT = /^(?:--|\/\*)/;
const CHANGES = /^(?<table>alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?(?:[\w.]|"[^"]*")+)\s+(?<changes>[\s\S]*)$/i;

/**
 * Its commands in order, without semicolons and comments. An `alter table` with several changes becomes one command for each; in a
 * transaction that is the same.
 */
export function commandsOf(script: string): string[] {
  return split(script, ';').flatMap((command) => {
    const { table, changes } = CHANGES.exec(command)?.groups ?? {};
    return table && changes ? split(changes, ',').map((change) => `${table} ${change}`) : [command];
  });
}

/** The text between these separators, except those in parentheses. */
function split(text: string, separator: string): string[] {
  const pieces = [''];
  let depth = 0;
  for (const [part] of text.matchAll(PART)) {
    if (part === '(') depth += 1;
    if (part === ')') depth -= 1;
    if (part === separator && depth === 0) pieces.push('');
    else if (!COMMENT.test(part)) pieces.push(pieces.pop()! + part);
  }
  return pieces.map((piece) => piece.trim()).filter(Boolean);
}
