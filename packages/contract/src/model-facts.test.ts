import { describe, expect, test } from 'vitest';
import { countFiles, type DescribedModel, factRows, inputMediaOf, modelFacts, whyNotSupported } from './model-facts.ts';
import { ownProviders } from './providers.ts';

describe('facts about models', () => {
  test.each(factRows)(
    '$provider/$prefix has the facts of its own row',
    ({ provider, prefix, contextTokens, input }) => {
      for (const model of [prefix, `${prefix}-2026-01-01`]) {
        expect(modelFacts({ provider, model })).toEqual({ contextTokens, input });
      }
    },
  );

  test('the model that the console proposes for each provider is known', () => {
    for (const { name, exampleModel } of ownProviders) {
      expect(modelFacts({ provider: name, model: exampleModel }), name).toEqual({
        contextTokens: expect.any(Number),
        input: expect.arrayContaining(['image', 'pdf']),
      });
    }
  });

  test('a name that only begins with the same letters is another model', () => {
    const unknown = { contextTokens: null, input: null };
    expect(modelFacts({ provider: 'openai', model: 'gpt-5.99' })).toEqual(unknown);
    expect(modelFacts({ provider: 'openai', model: 'o10' })).toEqual(unknown);
    expect(modelFacts({ provider: 'anthropic', model: 'my-claude' })).toEqual(unknown);
    expect(modelFacts({ provider: 'openai-compatible', model: 'gpt-4o', contextTokens: 8_000 })).toEqual({
      contextTokens: 8_000,
      input: null,
    });
  });

  test('a fine-tuned model has the facts of its base', () => {
    expect(modelFacts({ provider: 'openai', model: 'ft:gpt-4o-mini:acme::abc' })).toEqual(
      modelFacts({ provider: 'openai', model: 'gpt-4o-mini' }),
    );
    expect(modelFacts({ provider: 'google', model: 'models/gemini-2.5-pro' }).contextTokens).toBe(1_048_576);
  });

  test('a model in a cloud has the facts of its maker, whatever is before its name', () => {
    const claude = modelFacts({ provider: 'anthropic', model: 'claude-sonnet-5-5' });
    for (const before of ['', 'us.', 'global.', 'apac.', 'arn:aws:bedrock:us-east-1::foundation-model/'])
      expect(modelFacts({ provider: 'bedrock', model: `${before}anthropic.claude-sonnet-5-5-v1:0` })).toEqual(claude);
    expect(modelFacts({ provider: 'bedrock', model: 'eu.amazon.nova-pro-v1:0' }).contextTokens).toBe(300_000);
    expect(modelFacts({ provider: 'azure', model: 'gpt-4.1' }).contextTokens).toBe(1_047_576);
    expect(modelFacts({ provider: 'vertex', model: 'gemini-2.5-pro' }).input).toContain('audio');
    for (const [provider, model] of [
      ['bedrock', 'claude-sonnet-5-5'],
      ['bedrock', 'acme.claude-sonnet-5-5'],
      ['bedrock', 'arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2'],
      ['azure', 'prod-chat'],
    ] as const)
      expect(modelFacts({ provider, model })).toEqual({ contextTokens: null, input: null });
  });

  test('what the agent says about its model comes first', () => {
    const model = { provider: 'openai', model: 'gpt-4o', contextTokens: 1_000, input: [] } as const;
    expect(modelFacts(model)).toEqual({ contextTokens: 1_000, input: [] });
  });

  test('a file is what its type says, without regard to parameters and case', () => {
    expect(inputMediaOf('IMAGE/PNG; q=1')).toBe('image');
    expect(inputMediaOf('application/pdf')).toBe('pdf');
    expect(inputMediaOf('audio/wav')).toBe('audio');
    expect(inputMediaOf('text/csv; charset=utf-8')).toBe('text');
    expect(inputMediaOf('application/problem+json')).toBe('text');
    expect(inputMediaOf('image/svg+xml')).toBe('text');
    expect(inputMediaOf('application/json; charset=utf-16le')).toBe('text');
    expect(inputMediaOf('image/heic')).toBe('image');
    expect(inputMediaOf('application/zip')).toBeNull();
  });

  const isTaken = (model: DescribedModel, mediaType: string, bytes = 1) =>
    whyNotSupported(model, { mediaType, bytes }) === undefined;

  test('a model takes text, its own media, and what is not known to be refused', () => {
    const textOnly = { provider: 'openai', model: 'o3-mini' } as const;
    expect([isTaken(textOnly, 'text/plain'), isTaken(textOnly, 'image/png')]).toEqual([true, false]);
    const seeing = { provider: 'anthropic', model: 'claude-sonnet-4-5' } as const;
    expect([isTaken(seeing, 'application/pdf'), isTaken(seeing, 'audio/wav')]).toEqual([true, false]);
    const unknown = { provider: 'openai-compatible', model: 'llava' } as const;
    expect([isTaken(unknown, 'image/png'), isTaken(unknown, 'application/zip')]).toEqual([true, false]);
    expect(isTaken({ provider: 'worker' }, 'application/zip')).toBe(true);
  });

  test('no model takes what its provider’s format can’t carry, whatever the agent says', () => {
    const input = ['image', 'pdf', 'audio'] as const;
    expect(isTaken({ provider: 'openai', model: 'new', input }, 'audio/wav')).toBe(false);
    expect(isTaken({ provider: 'anthropic', model: 'new', input }, 'audio/mpeg')).toBe(false);
    expect(isTaken({ provider: 'google', model: 'new', input }, 'audio/flac')).toBe(true);
    const google = { provider: 'google', model: 'new', input } as const;
    const images = ['png', 'jpeg', 'webp', 'gif', 'heic', 'heif'].map((type) => `image/${type}`);
    expect(images.filter((type) => !isTaken(google, type))).toEqual(['image/gif']);
    for (const provider of ['openai', 'anthropic', 'openai-compatible'] as const) {
      const refused = images.filter((type) => !isTaken({ provider, model: 'new', input }, type));
      expect(refused, provider).toEqual(['image/heic', 'image/heif']);
    }
    expect(images.filter((type) => !isTaken({ provider: 'worker' }, type))).toEqual([]);
    expect(whyNotSupported({ provider: 'google', model: 'new' }, { mediaType: 'image/gif', bytes: 1 })).toBe(
      'the model google/new takes no images of the type image/gif',
    );
    const compatible = { provider: 'openai-compatible', model: 'new', input } as const;
    expect(['audio/wav', 'audio/x-wav', 'audio/mpeg', 'audio/flac'].map((type) => isTaken(compatible, type))).toEqual([
      true,
      true,
      true,
      false,
    ]);
  });

  test.each([
    ['mistral.pixtral-large-2502-v1:0', 4.25],
    ['us.anthropic.claude-3-5-sonnet-20241022-v2:0', 4.25],
    ['arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.mistral.pixtral-large-2502-v1:0', 4.25],
    ['us.anthropic.claude-sonnet-4-5-20250929-v1:0', 20],
    ['anthropic.claude-opus-5-v1:0', 20],
    ['eu.amazon.nova-pro-v1:0', 20],
    ['arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/a1b2', 20],
  ])('a PDF file for %s at Bedrock has at most %d MiB', (model, most) => {
    const config = { provider: 'bedrock', model, input: ['pdf'] } as const;
    const whyOf = (bytes: number) => whyNotSupported(config, { mediaType: 'application/pdf', bytes });
    expect(whyOf(most * 1024 * 1024)).toBeUndefined();
    expect(whyOf(most * 1024 * 1024 + 1)).toBe(`the model bedrock/${model} takes PDF files of at most ${most} MiB`);
  });

  test('a request to Bedrock has 5 PDF files, and 20 images and PDF files together; others are not counted', () => {
    const whyOf = (provider: 'bedrock' | 'anthropic', ...types: string[]) => {
      const count = countFiles(provider);
      return types.map((type) => count(type)).findLast((why) => why !== undefined);
    };
    const pdfs = Array<string>(5).fill('application/pdf');
    const images = Array<string>(20).fill('image/png');
    const texts = Array<string>(40).fill('text/plain');
    expect(whyOf('bedrock', ...pdfs, ...images.slice(5), ...texts)).toBeUndefined();
    expect(whyOf('bedrock', ...pdfs, 'application/pdf; x=1')).toBe('5 PDF files');
    expect(whyOf('bedrock', ...images, 'image/webp')).toBe('20 images and PDF files');
    expect(whyOf('bedrock', ...images, 'application/pdf')).toBe('20 images and PDF files');
    expect(whyOf('anthropic', ...pdfs, ...pdfs, ...images, ...images)).toBeUndefined();
    // One that is refused does not count.
    const count = countFiles('bedrock');
    for (const type of [...pdfs, ...pdfs, ...images.slice(5)]) count(type);
    expect(count('image/png')).toBe('20 images and PDF files');
  });

  test('a file that is too large for the provider is refused, with the limit', () => {
    const model = { provider: 'anthropic', model: 'claude-opus-5' } as const;
    expect(whyNotSupported(model, { mediaType: 'image/png', bytes: 4 * 1024 * 1024 })).toBe(
      'the model anthropic/claude-opus-5 takes images of at most 3.75 MiB',
    );
    expect(isTaken(model, 'application/pdf', 20 * 1024 * 1024)).toBe(true);
    expect(isTaken(model, 'application/pdf', 20 * 1024 * 1024 + 1)).toBe(false);
  });
});
