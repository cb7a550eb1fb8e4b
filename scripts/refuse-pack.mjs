// `prepack` of each package's source folder: what is there are sources, which can't run below node_modules.
console.error(
  `This folder has only sources. \`npm run build\` writes the packages to dist/: pack or publish from there.`,
);
process.exit(1);
