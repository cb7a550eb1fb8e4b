// What a node with the role `delivery` does.
import {
  createDispatcher,
  type Dispatcher,
  type DispatcherOptions,
  type DispatcherPlatform,
} from '../deliveries/dispatcher.ts';
import { createDestinationDispatcher, type DestinationPlatform } from './dispatcher.ts';

/** Sends webhooks, and records to destinations. */
export function createDispatchers(
  platform: DispatcherPlatform & DestinationPlatform,
  options: DispatcherOptions,
): Dispatcher {
  const dispatchers = [createDispatcher(platform, options), createDestinationDispatcher(platform, options)];
  return {
    start() {
      for (const dispatcher of dispatchers) dispatcher.start();
    },
    async stop() {
      await Promise.all(dispatchers.map((dispatcher) => dispatcher.stop()));
    },
  };
}
