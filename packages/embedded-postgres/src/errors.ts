// Why PostgreSQL did not start. Each message says what is wrong, where, and what to do.

/** The base class of all of them. No message contains a password or a value of the database. */
export class PostgresError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** Another running process uses the directory. */
export class DirectoryInUse extends PostgresError {
  readonly directory: string;

  constructor(directory: string) {
    super(`${directory} is in use by another running process. Stop that one, or use another directory.`);
    this.directory = directory;
  }
}

/** The directory has files but no cluster. It is left unchanged. */
export class DirectoryNotEmpty extends PostgresError {
  constructor(directory: string) {
    super(
      `${directory} contains files that don't belong to PostgreSQL. Use an empty directory, or one that doesn't exist yet.`,
    );
  }
}

/** The cluster was created by another major version, whose files this one can't read. */
export class WrongVersion extends PostgresError {
  /** Major versions, such as `17`. */
  readonly found: string;
  readonly expected: string;

  constructor(cluster: string, found: string, expected: string) {
    super(
      `${cluster} was created by PostgreSQL ${found}, and this release contains PostgreSQL ${expected}. ` +
        `Dump it with the release that created it and load the dump into a new directory, or go back to that release.`,
    );
    this.found = found;
    this.expected = expected;
  }
}

/** The cluster's directory is there but part of it is missing. */
export class DirectoryBroken extends PostgresError {
  constructor(cluster: string, what: string) {
    super(
      `${cluster} is not a complete PostgreSQL cluster: ${what}. Restore it from a backup, or move it away to start with an empty cluster.`,
    );
  }
}

/** The directory belongs to another user of this machine. */
export class DirectoryForbidden extends PostgresError {
  constructor(path: string, cause: unknown) {
    super(`${path} belongs to another user. Start as the user that it was first started as, or change the owner.`, {
      cause,
    });
  }
}

/** No data is lost: PostgreSQL starts again as soon as there is space. */
export class DiskFull extends PostgresError {
  constructor(path: string) {
    super(`There is no space left on the disk of ${path}. Free some space and start again. No stored data is lost.`);
  }
}

/** npm did not install, or this platform does not have, the package with the binaries. */
export class BinariesMissing extends PostgresError {
  constructor(packageName: string, what: string) {
    super(
      `The PostgreSQL binaries (${packageName}) are ${what}. Install without --omit=optional on a supported platform ` +
        `(Linux with glibc and macOS on x64 and arm64, Windows on x64).`,
    );
  }
}

/** PostgreSQL can't run as this user of the machine, or as root in this directory. */
export class UserUnsuitable extends PostgresError {}

/** Any other reason. The message has PostgreSQL's own output. */
export class PostgresFailed extends PostgresError {}
