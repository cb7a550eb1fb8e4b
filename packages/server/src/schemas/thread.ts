// A thread that evaluates schemas (threads.ts). Posts the outcome of each task as a message.
import { parentPort } from 'node:worker_threads';
import { judge, type Task } from './judge.ts';

parentPort?.on('message', (tasks: Task[]) => {
  for (const task of tasks) parentPort?.postMessage(judge(task));
});
parentPort?.postMessage('ready');
