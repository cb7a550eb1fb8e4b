import type { RequestOptions } from '../transport.ts';
import type { AppendToWorkerTurn, ClaimWorkerTurn, CompleteWorkerTurn, WorkerTurn } from '../types.generated.ts';

/** The calls of `client.workers` with which a program runs turns; they are documented there. */
export interface WorkerApi {
  claim(params: ClaimWorkerTurn, options?: RequestOptions): Promise<WorkerTurn | null>;
  heartbeat(workerTurnId: string, options?: RequestOptions): Promise<string>;
  append(workerTurnId: string, params: AppendToWorkerTurn, options?: RequestOptions): Promise<string>;
  complete(workerTurnId: string, params?: CompleteWorkerTurn, options?: RequestOptions): Promise<unknown>;
  fileContent(fileId: string, options?: RequestOptions): Promise<Uint8Array<ArrayBuffer>>;
  release(workerTurnId: string, options?: RequestOptions): Promise<unknown>;
}
