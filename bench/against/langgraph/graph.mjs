import { BaseChatModel } from '@langchain/core/language_models/chat_models';
import { AIMessageChunk } from '@langchain/core/messages';
import { ChatGenerationChunk } from '@langchain/core/outputs';
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph';

class InstantModel extends BaseChatModel {
  _llmType() {
    return 'instant';
  }

  async _generate() {
    throw new Error('The benchmark only streams');
  }

  async *_streamResponseChunks(_messages, _options, runManager) {
    for (let at = 0; at < 20; at += 1) {
      const text = `word${at} `;
      const chunk = new ChatGenerationChunk({ text, message: new AIMessageChunk(text) });
      yield chunk;
      await runManager?.handleLLMNewToken(text, undefined, undefined, undefined, undefined, { chunk });
    }
  }
}

const model = new InstantModel({});

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('answer', async ({ messages }) => ({ messages: await model.invoke(messages) }))
  .addEdge('__start__', 'answer')
  .compile();
