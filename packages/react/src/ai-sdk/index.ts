/** A session as the backend of `useChat` of the AI SDK. */
export {};
