import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { CreateSchedule, Schedule, ScheduleRun, UpdateSchedule } from '../types.generated.ts';

/** Schedules: Sessions that the service opens on time; list and read `read`, change `write`. */
export class Schedules {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Opens a Session at every time of `cron` in `timezone`, or once `at` an instant.
   *
   *     await client.schedules.create({ agentId, environment: 'production', input: 'Report.', cron: '0 9 * * 1-5' });
   *
   * @throws BadRequestError where `cron`, `timezone` or `at` is wrong; `errors` says what would be right
   * @throws NotFoundError where the Agent or the Environment does not exist
   * @throws ConflictError `agent_archived`
   * @throws UnprocessableError `budget_invalid`
   */
  async create(params: CreateSchedule, options?: RequestOptions): Promise<Schedule> {
    return (await this.#transport.call('createSchedule', { body: params }, options)).schedule;
  }

  /** The schedules, newest first. */
  list(params: Query<'listSchedules'> = {}, options?: RequestOptions): PageRequest<Schedule> {
    return new PageRequest(
      (cursor) => this.#transport.call('listSchedules', { query: { ...params, cursor } }, options),
      params.cursor,
    );
  }

  /** @throws NotFoundError */
  async get(scheduleId: string, options?: RequestOptions): Promise<Schedule> {
    return (await this.#transport.call('getSchedule', { params: { scheduleId } }, options)).schedule;
  }

  /**
   * Changes the schedule, pauses it or enables it again. A change of `cron`, `timezone`, `at` or `status` counts from now.
   * Not tried again after a lost connection.
   *
   * @throws the same as `create`
   */
  async update(scheduleId: string, params: UpdateSchedule, options?: RequestOptions): Promise<Schedule> {
    return (await this.#transport.call('updateSchedule', { params: { scheduleId }, body: params }, options)).schedule;
  }

  /** Deletes the schedule and its runs; the Sessions that it opened stay. */
  delete(scheduleId: string, options?: RequestOptions): Promise<Result<'deleteSchedule'>> {
    return this.#transport.call('deleteSchedule', { params: { scheduleId } }, options);
  }

  /** What became of its occurrences, newest first: which Session was opened, what was missed, what failed and why. */
  runs(scheduleId: string, params: Query<'listScheduleRuns'> = {}, options?: RequestOptions): PageRequest<ScheduleRun> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listScheduleRuns', { params: { scheduleId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }
}
