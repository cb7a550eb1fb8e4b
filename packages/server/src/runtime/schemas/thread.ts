// A thread that judges schemas (threads.ts). What is wrong with each task is a message.
import { parentPort } from 'node:worker_threads';
import { judge, type Task } from './judge.ts';

parentPort?.on('message', (tasks: Task[]) => {
  for (const task of tasks) parentPort?.postMessage(judge(task));
});
parentPort?.postMessage('ready');
