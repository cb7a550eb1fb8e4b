// An agent on a model of your choice: any server with OpenAI's chat completions API (Ollama, vLLM, a gateway).
//
//   SIGNALBOX_API_KEY=sbk_… MODEL_BASE_URL=http://127.0.0.1:11434/v1 MODEL_NAME=qwen3 npm exec -c 'node examples/model.ts'
//
// If you set MODEL_API_KEY, it is stored as a secret of the environment, which takes an API key with the permission `admin`.
// If the model's server has a private address, start Signalbox with SIGNALBOX_EGRESS_ALLOW=127.0.0.1 (or that address).
import './explain.ts';
import { Signalbox } from '@signalbox/client';

const { MODEL_BASE_URL, MODEL_NAME, MODEL_API_KEY } = process.env;
const client = new Signalbox();
const baseUrl = MODEL_BASE_URL ?? 'http://127.0.0.1:11434/v1';

if (MODEL_API_KEY) {
  // The secret is sent to this host only, whatever an agent's definition says.
  const allowedHosts = [new URL(baseUrl).host];
  await client.environments.secrets.set('production', 'MODEL_API_KEY', { value: MODEL_API_KEY, allowedHosts });
}

const { agentId } = await client.agents.create({
  name: 'Helper',
  instructions: 'Answer in one sentence.',
  model: {
    provider: 'openai-compatible',
    model: MODEL_NAME ?? 'qwen3',
    baseUrl,
    ...(MODEL_API_KEY && { apiKeySecret: 'MODEL_API_KEY' }),
  },
});

const { sessionId } = await client.sessions.open({
  agentId,
  environment: 'production',
  input: 'Why is the sky blue?',
  closeOnIdle: true,
  budget: { maxTokens: 10_000 },
});
let text = '';
for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') text += chunk.delta;
    // The model call failed: discard the text so far.
    if (chunk.type === 'message.reset') text = '';
  }
}

const { status, error, usage } = await client.sessions.get(sessionId);
if (status === 'failed') throw new Error(`The model call failed: ${error?.message}`);
console.log(text);
console.log(`${usage.inputTokens} tokens in, ${usage.outputTokens} out`);
