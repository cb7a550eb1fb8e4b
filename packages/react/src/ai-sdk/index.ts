/** A session as the backend of `useChat` of the AI SDK (`ai` 7, `@ai-sdk/react` 4). */
export { type SignalboxMetadata, toUIMessages } from '@signalbox/client/ai-sdk';
export { hasAnswers } from './answers.ts';
export { SignalboxTransport, type SignalboxTransportOptions } from './transport.ts';
