/** What is wrong with a schema, and where in it. */
export interface Problem {
  /** Such as `properties.cents.minimum`, or `anyOf[0]`; empty for the schema as a whole. */
  readonly path: string;
  /** In words that follow the path: `is not in the inputSchema`. */
  readonly message: string;
}
