// An Agent on a model of your own choice: any server that speaks OpenAI's chat completions (Ollama, vLLM, a gateway).
//
//   SIGNALBOX_API_KEY=sbk_… MODEL_BASE_URL=http://127.0.0.1:11434/v1 MODEL_NAME=qwen3 npm exec -c 'node examples/model.ts'
//
// With MODEL_API_KEY the model's key is kept as a secret of the Environment, for which the API key must be an admin's. A server on
// a private address must be opened by the operator: SIGNALBOX_EGRESS_ALLOW=127.0.0.1.
import { Signalbox } from '@signalbox/client';

const { SIGNALBOX_API_KEY = '', SIGNALBOX_URL, MODEL_BASE_URL, MODEL_NAME, MODEL_API_KEY } = process.env;
const client = new Signalbox({ apiKey: SIGNALBOX_API_KEY, baseUrl: SIGNALBOX_URL ?? 'http://127.0.0.1:4500' });
const baseUrl = MODEL_BASE_URL ?? 'http://127.0.0.1:11434/v1';

if (MODEL_API_KEY) {
  // It goes to this host alone, whatever an Agent says.
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
let answer = '';
for await (const { chunks } of client.sessions.stream(sessionId)) {
  for (const chunk of chunks) {
    if (chunk.type === 'message.chunk') answer += chunk.delta;
    // The model broke off and is asked again: what it had said is void.
    if (chunk.type === 'message.reset') answer = '';
  }
}

const { status, error, usage } = await client.sessions.get(sessionId);
if (status === 'failed') throw new Error(`The model did not answer: ${error?.message}`);
console.log(answer);
console.log(`${usage.inputTokens} tokens in, ${usage.outputTokens} out`);
