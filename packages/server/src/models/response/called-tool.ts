// The tool that a model calls. Some servers leave in its name what their model's own format puts around it.

/** What is after the name: `look<|channel|>commentary`. */
const AFTER = /<\|[\s\S]*$/;
/** What is before it: `functions.look`, `to=functions.look`, `default_api:look`. */
const BEFORE = /^(?:[\s\S]*\bto=)?(?:(?:functions?|tools?|default_api)[.:/])?/;
/** Kimi's number of the call: `functions.look:0`. */
const NUMBER = /:\d+$/;

/** The name of the tool that is meant, if there is one of that name; otherwise the name as it is. */
export function calledTool(name: string, tools: ReadonlySet<string>): string {
  if (tools.has(name)) return name;
  const plain = name.replace(AFTER, '').trim();
  const inner = plain.replace(BEFORE, '');
  return [plain, inner, inner.replace(NUMBER, '')].find((one) => tools.has(one)) ?? name;
}
