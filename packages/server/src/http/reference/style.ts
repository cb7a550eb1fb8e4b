// The reference page's style sheet: light and dark by the reader's setting, from 360 px up. No font is fetched.

export const docsStyle = `
:root {
  --page: #fbfaf8; --panel: #ffffff; --ink: #1c1f24; --quiet: #5d646f; --line: #e4e1dc; --link: #1a56b0;
  --code: #f1efeb; --example: #1d2129; --example-ink: #e6e3dc; --mark: #fff3d6;
  --green: #17663a; --blue: #1a56b0; --amber: #8a5200; --red: #a8261f; --violet: #6a35a5;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #15171b; --panel: #1b1e23; --ink: #e7e5e0; --quiet: #9aa1ac; --line: #2c3037; --link: #86b4ff;
    --code: #262a31; --example: #0f1114; --example-ink: #dcd9d2; --mark: #3a3220;
    --green: #6fd39b; --blue: #86b4ff; --amber: #f0b35c; --red: #ff8d84; --violet: #c49bff;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--page); color: var(--ink); line-height: 1.55; overflow-wrap: break-word;
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
  display: grid; grid-template-columns: 18rem minmax(0, 1fr);
}
a { color: var(--link); text-decoration-thickness: 1px; text-underline-offset: 2px; }
a:focus-visible, summary:focus-visible, pre:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
code, pre, .name, .path, .method, .permission { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; }
code { font-size: .86em; background: var(--code); padding: .1em .3em; border-radius: 4px; }
p { margin: .5rem 0; max-width: 44rem; }
.quiet { color: var(--quiet); font-size: .9rem; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 1rem; top: 1rem; background: var(--panel); padding: .5rem 1rem; z-index: 1; }

nav {
  position: sticky; top: 0; height: 100vh; overflow-y: auto; padding: 1.25rem 1rem 2rem; font-size: .875rem;
  border-right: 1px solid var(--line); background: var(--panel); scrollbar-width: thin;
}
.brand { display: flex; align-items: center; gap: .5rem; font-weight: 650; font-size: 1.05rem; color: var(--ink); text-decoration: none; }
.brand span { width: .8rem; height: .8rem; border-radius: 50%; background: #2fb36a; box-shadow: 0 0 0 3px color-mix(in srgb, #2fb36a 25%, transparent); }
.brand small { color: var(--quiet); font-weight: 400; }
nav ul { list-style: none; margin: 0; padding: 0; }
nav > ul { margin-top: 1rem; }
nav > ul > li > a { display: block; margin-top: .9rem; font-weight: 600; color: var(--ink); text-decoration: none; }
nav ul ul a { display: flex; gap: .5rem; align-items: baseline; padding: .18rem 0; color: var(--quiet); text-decoration: none; line-height: 1.35; }
nav ul ul a:hover, nav > ul > li > a:hover { color: var(--link); }
nav ul ul code { background: none; padding: 0; }
nav .method { flex: none; width: 3.2rem; font-size: .62rem; padding: 0; background: none; }

main { padding: 2rem clamp(1rem, 4vw, 3.5rem) 6rem; max-width: 84rem; }
h1 { font-size: 2rem; line-height: 1.2; margin: 0 0 1rem; letter-spacing: -.01em; }
h2 { font-size: 1.45rem; margin: 0 0 .5rem; letter-spacing: -.005em; }
h3 { font-size: 1.08rem; margin: 0 0 .4rem; max-width: 44rem; }
h3 a { color: inherit; text-decoration: none; }
h3 a:hover { text-decoration: underline; }
h4 { font-size: .8rem; margin: 1.25rem 0 .25rem; color: var(--quiet); font-weight: 600; letter-spacing: .02em; }
section { margin-top: 3.5rem; padding-top: 1.5rem; border-top: 1px solid var(--line); }
article { margin-top: 2.25rem; padding: 1.25rem 1.35rem 1.35rem; background: var(--panel); border: 1px solid var(--line); border-radius: 10px; }
article:target { border-color: var(--link); }
.call { display: flex; flex-wrap: wrap; align-items: center; gap: .5rem; max-width: none; margin: 0; }
.path { background: none; padding: 0; font-size: .92rem; }
.path var { font-style: normal; color: var(--violet); }
.method, .permission { font-size: .72rem; font-weight: 700; padding: .12rem .42rem; border-radius: 5px; }
.method.get { color: var(--blue); } .method.post { color: var(--green); }
.method.put, .method.patch { color: var(--amber); } .method.delete { color: var(--red); }
article .method { background: color-mix(in srgb, currentColor 13%, transparent); }
.permission { font-weight: 600; border: 1px solid currentColor; padding: .05rem .42rem; }
.permission.read { color: var(--blue); } .permission.write { color: var(--amber); } .permission.admin { color: var(--violet); }
.columns { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 27rem); gap: 2rem; align-items: start; }
pre {
  position: sticky; top: 1rem; margin: 1.25rem 0 0; padding: .9rem 1rem; overflow: auto; max-height: calc(100vh - 2rem);
  background: var(--example); color: var(--example-ink); border-radius: 8px; font-size: .8rem; line-height: 1.5;
}
pre code { background: none; padding: 0; font-size: inherit; }

.fields { list-style: none; margin: .25rem 0 0; padding: 0; }
.fields > li { padding: .5rem 0; border-top: 1px solid var(--line); }
.fields > li:first-child { border-top: 0; }
.fields p { margin: .1rem 0 0; font-size: .92rem; }
.fields .name { font-weight: 600; background: none; padding: 0; font-size: .9rem; }
.type, .optional, .limits, .status { color: var(--quiet); font-size: .84rem; }
.fields p.limits { font-size: .84rem; }
.type code { background: none; padding: 0; }
.optional::before { content: "· "; }
.fields details { margin-top: .3rem; }
.fields summary { cursor: pointer; font-size: .84rem; color: var(--link); width: fit-content; }
.fields .fields { border-left: 2px solid var(--line); padding-left: .9rem; }
.codes { display: flex; flex-wrap: wrap; gap: .35rem; max-width: none; }
.codes a { text-decoration: none; }
.table { margin: 1rem 0 0; }
.table > div { display: grid; grid-template-columns: minmax(0, 16rem) minmax(0, 1fr); gap: 1rem; padding: .5rem .5rem; border-top: 1px solid var(--line); }
.table > div:target { background: var(--mark); }
.table dd { margin: 0; }
article .table > div { grid-template-columns: 4.5rem minmax(0, 1fr); }
.schemas article { margin-top: 1rem; padding: 1rem 1.25rem; }

@media (max-width: 75rem) { .columns { grid-template-columns: minmax(0, 1fr); gap: 0; } pre { position: static; } }
@media (max-width: 56rem) {
  body { display: block; }
  nav { position: static; height: auto; border-right: 0; border-bottom: 1px solid var(--line); padding: .9rem 1rem; }
  nav > ul { display: flex; flex-wrap: wrap; gap: .25rem 1rem; margin-top: .6rem; }
  nav > ul > li > a { margin-top: 0; font-weight: 500; }
  nav ul ul { display: none; }
  main { padding-top: 1.5rem; }
  article { padding: 1rem; }
  .table > div { grid-template-columns: minmax(0, 1fr); gap: .2rem; }
}
@media print { nav { display: none; } body { display: block; } pre { position: static; white-space: pre-wrap; } }
`;
