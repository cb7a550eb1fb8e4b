import { PageRequest } from '../page.ts';
import type { Query, RequestOptions, Result, Transport } from '../transport.ts';
import type { CreateSchedule, Schedule, ScheduleRun, UpdateSchedule } from '../types.generated.ts';

/** Schedules: sessions that the service opens at set times. Reading needs `read`, changing `write`. */
export class Schedules {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /**
   * Creates a schedule, which opens a session at every time of `cron` in `timezone`, or once `at` a time.
   *
   *     await client.schedules.create({ agentId, environment: 'production', input: 'Report.', cron: '0 9 * * 1-5' });
   *
   * @throws BadRequestError if `cron`, `timezone` or `at` is invalid; `errors` says what is expected
   * @throws NotFoundError if the agent or the environment does not exist
   * @throws ConflictError `agent_archived`
   * @throws UnprocessableError `budget_invalid`
   */
  async create(params: CreateSchedule, options?: RequestOptions): Promise<Schedule> {
    return (await this.#transport.call('createSchedule', { body: params }, options)).schedule;
  }

  /** Schedules, newest first. */
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
   * Changes, pauses or resumes a schedule. A change of `cron`, `timezone`, `at` or `status` applies from now on. Not retried
   * after a lost connection.
   *
   * @throws as `create` does
   */
  async update(scheduleId: string, params: UpdateSchedule, options?: RequestOptions): Promise<Schedule> {
    return (await this.#transport.call('updateSchedule', { params: { scheduleId }, body: params }, options)).schedule;
  }

  /** Deletes the schedule and its runs; the sessions that it opened remain. */
  delete(scheduleId: string, options?: RequestOptions): Promise<Result<'deleteSchedule'>> {
    return this.#transport.call('deleteSchedule', { params: { scheduleId } }, options);
  }

  /**
   * Opens one session now, as at one of its times, which do not change. A paused schedule can be run as well.
   *
   * @throws as opening a session does, and then there is no run
   */
  async run(scheduleId: string, options?: RequestOptions): Promise<ScheduleRun> {
    return (await this.#transport.call('runSchedule', { params: { scheduleId } }, options)).run;
  }

  /**
   * The next times of a cron expression, earliest first.
   *
   * @throws BadRequestError if it is invalid; `errors` says what is expected
   */
  async preview(params: Query<'previewSchedule'>, options?: RequestOptions): Promise<string[]> {
    return (await this.#transport.call('previewSchedule', { query: params }, options)).preview.times;
  }

  /** Its runs, newest first: the session that was opened, or why there is none. */
  runs(scheduleId: string, params: Query<'listScheduleRuns'> = {}, options?: RequestOptions): PageRequest<ScheduleRun> {
    return new PageRequest(
      (cursor) =>
        this.#transport.call('listScheduleRuns', { params: { scheduleId }, query: { ...params, cursor } }, options),
      params.cursor,
    );
  }
}
