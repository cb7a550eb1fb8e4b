/** What well-known models can take: how many tokens, and which files besides text. */

import { type ProviderName, providers } from './providers.ts';

/** What a model may take besides text. A text file is sent as text, which every model takes. */
export const inputMedia = ['image', 'pdf', 'audio'] as const;
export type InputMedia = (typeof inputMedia)[number];

export interface ModelFacts {
  /** Input and output together; null if unknown. */
  contextTokens: number | null;
  /** Null if unknown: then every file is sent, and the provider refuses what its model does not take. */
  input: readonly InputMedia[] | null;
}

type Row = readonly [prefixes: readonly string[], contextTokens: number, input: readonly InputMedia[]];

const NONE = [] as const;
const IMAGE = ['image'] as const;
const IMAGE_PDF = ['image', 'pdf'] as const;
const ALL = ['image', 'pdf', 'audio'] as const;

/**
 * By the beginning of the model's name; the first row that fits counts. A new model is in none of the rows, or in one that is too
 * careful: `model.contextTokens` and `model.input` of the agent say what it takes.
 */
const rows: Partial<Record<ProviderName, readonly Row[]>> = {
  openai: [
    [['gpt-6', 'gpt-6.1', 'gpt-6.2', 'gpt-daybreak-blue'], 1_050_000, IMAGE_PDF],
    [['gpt-5.4-mini', 'gpt-5.4-nano', 'gpt-5.6-cyber', 'gpt-daybreak-red', 'chat-latest'], 400_000, IMAGE_PDF],
    [['gpt-5.4', 'gpt-5.5', 'gpt-5.6'], 1_050_000, IMAGE_PDF],
    [['gpt-5-chat', 'gpt-5.1-chat', 'gpt-5.2-chat', 'gpt-5.3-chat'], 128_000, IMAGE_PDF],
    [['gpt-5.3-codex-spark'], 128_000, NONE],
    [['gpt-5', 'gpt-5.1', 'gpt-5.2', 'gpt-5.3'], 400_000, IMAGE_PDF],
    [['gpt-4.1'], 1_047_576, IMAGE_PDF],
    [['gpt-4o', 'chatgpt-4o'], 128_000, IMAGE_PDF],
    [['gpt-4-turbo'], 128_000, IMAGE],
    [['gpt-4-32k'], 32_768, NONE],
    [['gpt-4'], 8_192, NONE],
    [['gpt-3.5-turbo'], 16_385, NONE],
    [['o1-mini', 'o1-preview'], 128_000, NONE],
    [['o3-mini'], 200_000, NONE],
    [['o1', 'o3', 'o4-mini'], 200_000, IMAGE_PDF],
  ],
  anthropic: [
    [['claude-2', 'claude-instant'], 100_000, NONE],
    [['claude-3-opus', 'claude-3-sonnet', 'claude-3-haiku'], 200_000, IMAGE],
    [['claude-opus-4-6', 'claude-opus-4-7', 'claude-opus-4-8', 'claude-sonnet-4-6'], 1_000_000, IMAGE_PDF],
    [
      ['claude-opus-5', 'claude-sonnet-5', 'claude-haiku-5-5', 'claude-fable-5', 'claude-mythos-5'],
      1_000_000,
      IMAGE_PDF,
    ],
    [['claude'], 200_000, IMAGE_PDF],
  ],
  google: [
    [['gemini-pro-latest'], 1_048_576, ALL],
    [['gemini-pro', 'gemini-1.0-pro'], 32_768, NONE],
    [['gemini-1.5-pro'], 2_097_152, ALL],
    [['gemini-2.5-flash-image', 'gemini-3-pro-image', 'gemini-3.1-flash-image'], 65_536, IMAGE],
    [['gemini-2.5-computer-use-preview'], 128_000, IMAGE],
    [['gemini-robotics-er-2-preview'], 131_072, IMAGE],
    [['deep-research-preview', 'deep-research-max-preview'], 1_048_576, IMAGE_PDF],
    [['gemini'], 1_048_576, ALL],
    [['gemma-4'], 262_144, IMAGE],
    [['gemma-3-1b'], 32_768, NONE],
    [['gemma-3'], 131_072, IMAGE],
  ],
  // Claude's limits are Anthropic's.
  bedrock: [
    [['amazon.nova-micro'], 128_000, NONE],
    [['amazon.nova-lite', 'amazon.nova-pro'], 300_000, IMAGE_PDF],
    [['amazon.nova-premier'], 1_000_000, IMAGE_PDF],
    [['meta.llama3-1', 'meta.llama3-3', 'openai.gpt-oss'], 128_000, NONE],
  ],
};

/** Clouds have other providers' models. */
const makers: Partial<Record<ProviderName, ProviderName>> = { azure: 'openai', vertex: 'google' };

/** A model of an agent; its own `contextTokens` and `input` come before what is known about its name. */
export interface DescribedModel {
  provider: ProviderName;
  model?: string;
  contextTokens?: number;
  input?: readonly InputMedia[];
}

export function modelFacts(model: DescribedModel): ModelFacts {
  const [, contextTokens = null, input = null] = rowOf(model) ?? [];
  return { contextTokens: model.contextTokens ?? contextTokens, input: model.input ?? input };
}

function rowOf({ provider, model = '' }: DescribedModel): Row | undefined {
  // A fine-tuned model has its base's name in its own, and Google accepts a name with its collection.
  if (provider !== 'bedrock') return rowIn(makers[provider] ?? provider, model.replace(/^(ft:|models\/)/, ''));
  // The name of an inference profile is that of its model with an area before it: `us.anthropic.claude-…`.
  const [, maker, name = ''] = /(?:^|[./])(anthropic|amazon|meta|openai)\.(.+)$/.exec(model) ?? [];
  return maker === 'anthropic' ? rowIn('anthropic', name) : rowIn('bedrock', `${maker}.${name}`);
}

function rowIn(provider: ProviderName, name: string): Row | undefined {
  return rows[provider]?.find(([prefixes]) => prefixes.some((prefix) => beginsWith(name, prefix)));
}

/** `gpt-4` begins `gpt-4-0613`, but neither `gpt-4o` nor `gpt-4.1`, which are other models. */
function beginsWith(name: string, prefix: string): boolean {
  return name.startsWith(prefix) && !/^[A-Za-z0-9.]/.test(name.slice(prefix.length));
}

/** What a file is to a model: one of its media, text, or null if no model takes it. */
export function inputMediaOf(mediaType: string): InputMedia | 'text' | null {
  const type = essenceOf(mediaType);
  if (imageTypes.has(type)) return 'image';
  if (type === 'application/pdf') return 'pdf';
  if (type.startsWith('audio/')) return 'audio';
  if (type.startsWith('text/') || textTypes.has(type) || /\+(json|xml)$/.test(type)) return 'text';
  return null;
}

function essenceOf(mediaType: string): string {
  return mediaType.split(';')[0]!.trim().toLowerCase();
}

/** Not SVG, which is text to a model. */
const imageTypes: ReadonlySet<string> = new Set([
  'image/png',
  'image/jpeg',
  'image/gif',
  'image/webp',
  'image/heic',
  'image/heif',
]);
const textTypes: ReadonlySet<string> = new Set([
  'application/json',
  'application/jsonl',
  'application/x-ndjson',
  'application/xml',
  'application/yaml',
  'application/x-yaml',
  'application/toml',
  'application/javascript',
  'application/sql',
]);

const MIB = 1024 * 1024;

interface FormatFacts {
  /** The types that a request can carry, besides text. */
  carries: RegExp;
  /** The limit of all files in a request. In base64 they take a third more, and the request has the rest of the transcript as well. */
  maxBytes: number;
  /** The limit of one image. */
  maxImageBytes?: number;
  /** The limit of one PDF file for this model, if it has one besides that of all files. */
  maxPdfBytes?: (model: string) => number | undefined;
  imageSides?: ImageSides;
  /** The most files of some kinds, together, in a request. */
  maxFiles?: readonly (readonly [most: number, kinds: readonly InputMedia[]])[];
}

/** The longest side of an image, in pixels. A request with larger ones is refused as a whole. */
export interface ImageSides {
  readonly maxPixels: number;
  /** With more images than `images` in a request, none of them may have a longer side than `maxPixels`. */
  readonly crowded?: { readonly images: number; readonly maxPixels: number };
}

const openaiFormat = { carries: /^(image\/(png|jpeg|gif|webp)|application\/pdf)$/, maxBytes: 32 * MIB };

/** A request has at most 20 MB. */
const googleFormat = {
  carries: /^(image\/(png|jpeg|webp|heic|heif)|application\/pdf|audio\/.+)$/,
  maxBytes: 14 * MIB,
};

/** Claude from version 4, Nova, and ARNs that do not say which model it is. Their PDF files are limited by the request only. */
const BEDROCK_LARGE_PDF =
  /anthropic\.claude-(?![23]|instant|v\d)|amazon\.nova|^arn:[\w-]+:bedrock:[\w-]*:\d+:(?!inference-profile\/)/;

/** What the requests of each provider can carry. A script and a program of your own have no requests: they get every file. */
const formats: Partial<Record<ProviderName, FormatFacts>> = {
  openai: openaiFormat,
  azure: openaiFormat,
  // A request has at most 32 MB, and an image 5 MB of base64.
  anthropic: {
    carries: openaiFormat.carries,
    maxBytes: 20 * MIB,
    maxImageBytes: 3.75 * MIB,
    imageSides: { maxPixels: 8000, crowded: { images: 20, maxPixels: 2000 } },
  },
  google: googleFormat,
  // An image has at most 3.75 MB, a document 4.5 MB. Images and documents are counted together by Claude.
  bedrock: {
    carries: openaiFormat.carries,
    maxBytes: 20 * MIB,
    maxImageBytes: 3.5 * MIB,
    maxPdfBytes: (model) => (BEDROCK_LARGE_PDF.test(model) ? undefined : 4.25 * MIB),
    imageSides: { maxPixels: 8000 },
    maxFiles: [
      [5, ['pdf']],
      [20, ['image', 'pdf']],
    ],
  },
  vertex: googleFormat,
  'openai-compatible': {
    carries: /^(image\/(png|jpeg|gif|webp)|application\/pdf|audio\/(wav|mpeg))$/,
    maxBytes: 14 * MIB,
  },
};

/** Undefined if the provider has no such limit, or it is not known. */
export function imageSidesOf(provider: ProviderName): ImageSides | undefined {
  return formats[provider]?.imageSides;
}

/** The most bytes of files that one request to the provider has. */
export function maxRequestFileBytes(provider: ProviderName): number {
  return formats[provider]?.maxBytes ?? openaiFormat.maxBytes;
}

/** Why a model does not take a file, for people; undefined if it does, or if that is not known. */
export function whyNotSupported(
  model: DescribedModel,
  { mediaType, bytes }: { mediaType: string; bytes: number },
): string | undefined {
  const media = inputMediaOf(mediaType);
  if (media === 'text') return undefined;
  const name = `the model ${model.provider}/${model.model ?? ''}`;
  const format = formats[model.provider];
  if (media === null && !format) return undefined;
  if (media === null) return `${name} takes no files of the type ${mediaType}`;
  if (modelFacts(model).input?.includes(media) === false) return `${name} takes no ${plural[media]}`;
  const type = essenceOf(mediaType).replace('audio/x-wav', 'audio/wav').replace('audio/mp3', 'audio/mpeg');
  if (format?.carries.test(type) === false) return `${name} takes no ${plural[media]} of the type ${type}`;
  const own = { image: format?.maxImageBytes, pdf: format?.maxPdfBytes?.(model.model ?? ''), audio: undefined }[media];
  const maxBytes = own ?? format?.maxBytes;
  if (maxBytes === undefined || bytes <= maxBytes) return undefined;
  return `${name} takes ${plural[media]} of at most ${maxBytes / MIB} MiB`;
}

/**
 * Counts the files of a request to the provider. The result is called with the type of each, and returns undefined if the request can have
 * it as well, or the limit that it would exceed, for people: "5 PDF files".
 */
export function countFiles(provider: ProviderName): (mediaType: string) => string | undefined {
  const counted: (InputMedia | 'text' | null)[] = [];
  return (mediaType) => {
    const media = inputMediaOf(mediaType);
    const limits = (formats[provider]?.maxFiles ?? []).filter(([, kinds]) => kinds.some((kind) => kind === media));
    const reached = limits.find(
      ([most, kinds]) => counted.filter((one) => kinds.some((kind) => kind === one)).length >= most,
    );
    if (reached) return `${reached[0]} ${reached[1].map((kind) => plural[kind]).join(' and ')}`;
    counted.push(media);
    return undefined;
  };
}

const plural: Record<InputMedia, string> = { image: 'images', pdf: 'PDF files', audio: 'audio' };

/** For tests: every row by itself, so that none is hidden behind an earlier one. */
export const factRows = providers.flatMap((provider) =>
  (rows[provider] ?? []).flatMap(([prefixes, contextTokens, input]) =>
    prefixes.map((prefix) => ({ provider, prefix, contextTokens, input })),
  ),
);
