/** In the `_meta` of a call of a tool; the same is sent as `Idempotency-Key`. */
export const OPERATION_ID = 'signalbox.dev/operationId';
