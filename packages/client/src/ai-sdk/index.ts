/** Sessions as messages of the AI SDK (`ai`): for its UI hooks, and for route handlers that serve them. */
export { type FileUrl, type SignalboxMetadata, TurnMessage } from './turn-message.ts';
export { messageIdOfTurn, type TurnStreamOptions, toUIMessageChunks, toUIMessageStream } from './turn-stream.ts';
export { toUIMessageStreamResponse, type UIMessageStreamResponseOptions } from './ui-message-response.ts';
export { toUIMessages, type UIMessagesOptions } from './ui-messages.ts';
