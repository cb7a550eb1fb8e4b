// One setting of the service.
export interface Setting<T> {
  /** The option of the command, without its dashes; undefined if there is only a variable (mostly for secrets). */
  option?: string;
  variable: string;
  /** As the operator would write it; undefined if there is no default. */
  default?: string;
  /** In one line, for `--help`. */
  about: string;
  /** Throws an Error, or an AggregateError of several. Its message says what is allowed, and shows no value that may be secret. */
  parse(text: string, env: Env): T;
}

export type Env = Readonly<Record<string, string | undefined>>;

export const setting = <T>(definition: Setting<T>): Setting<T> => definition;
export const required = <T>(definition: Setting<T> & { default: string }): Setting<T> & { default: string } =>
  definition;
