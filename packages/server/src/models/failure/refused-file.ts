// Which file of a request its provider refuses. It is certain if the error names the place of one file, or is about images or documents and
// the request has one of these. If there are several, and the error names none, one of them is refused.
import { type FilePart, inputMediaOf } from '@signalbox/contract';
import { parseJson } from '../../lib/json/json.ts';
import { isRecord, type ProviderError } from '../model/provider-error.ts';

/** The kinds of files that errors name. A text file is a text of the request. */
export type RefusedMedia = 'image' | 'pdf';

export function refusedMediaOf(mediaType: string): RefusedMedia[] {
  const media = inputMediaOf(mediaType);
  return media === 'image' || media === 'pdf' ? [media] : [];
}

/** The file of the request whose content is this text, in base64. */
export type FileOf = (content: string) => FilePart | undefined;

/** The files that the error may be about; none if it is not about files. `body`: the request's. */
export function suspectFiles(error: ProviderError, body: string, fileOf: FileOf): FilePart[] {
  const request = parseJson(body);
  const media = mediaNamedIn(error);
  const [named] = error.params.flatMap((param) => placeOf(request, param) ?? []);
  const inPlace = named ? filesIn(named.place, fileOf) : [];
  // A path that the request does not have may be that of a request which a gateway has made of it.
  const isElsewhere = !named || (inPlace.length === 0 && !named.isWhole);
  const files = isElsewhere ? filesIn(request, fileOf) : inPlace;
  // A part is only its file. A message, or the whole request, may be refused for something else.
  const suspects =
    named?.isPart && !isElsewhere
      ? files
      : files.filter(({ mediaType }) => refusedMediaOf(mediaType).some((one) => media.includes(one)));
  return [...new Map(suspects.map((file) => [file.fileId, file])).values()];
}

/** Words of sentences and of codes: `invalid_image`. */
const SAYS_IMAGE = /(?<![a-z])(image|picture)s?(?![a-z])/;
const SAYS_PDF = /(?<![a-z])(pdf|document|file)s?(?![a-z])/;

/** The kinds of files that an error is about, if it is about files. */
export function mediaNamedIn({ words, sentence }: Pick<ProviderError, 'words' | 'sentence'>): RefusedMedia[] {
  const says = (pattern: RegExp) => pattern.test(sentence) || words.some((word) => pattern.test(word));
  return [...(says(SAYS_IMAGE) ? (['image'] as const) : []), ...(says(SAYS_PDF) ? (['pdf'] as const) : [])];
}

/** Fields with the parts of a message, or of a tool's result. */
const LISTS = ['content', 'parts', 'output', 'functionResponse'];

interface Place {
  readonly place: unknown;
  readonly elements: readonly unknown[];
  readonly isPart: boolean;
  readonly isWhole: boolean;
}

/**
 * The innermost part or message that the path is within: `messages.3.content.1.image.source`. Steps that the request does not have are
 * passed over: some servers name the type of a part as well. `isWhole`: it has all of them. Undefined if the path is of none.
 */
function placeOf(request: unknown, path: string): Place | undefined {
  let at = request;
  let place: unknown;
  const elements: unknown[] = [];
  let isWhole = true;
  for (const step of path.split(/[.[\]'"]+/).filter((one) => one !== '')) {
    const isPosition = /^\d+$/.test(step);
    if (Array.isArray(at) && isPosition) {
      at = at[Number(step)];
      place = at;
      elements.unshift(at);
    } else if (isRecord(at) && Object.hasOwn(at, step)) {
      at = at[step];
      place ??= at;
    } else if (isPosition) {
      return undefined;
    } else {
      isWhole = false;
    }
  }
  if (place === undefined) return undefined;
  const isPart = isRecord(place) && !LISTS.some((name) => Object.hasOwn(place as object, name));
  return { place, elements, isPart, isWhole };
}

/** The elements of lists that the path is within, the innermost first: a part and its message, or a message. */
export function elementsAt(request: unknown, path: string): readonly unknown[] {
  return placeOf(request, path)?.elements ?? [];
}

function filesIn(value: unknown, fileOf: FileOf): FilePart[] {
  if (typeof value === 'string') {
    const file = fileOf(value.startsWith('data:') ? value.slice(value.indexOf(',') + 1) : value);
    return file ? [file] : [];
  }
  if (Array.isArray(value)) return value.flatMap((one) => filesIn(one, fileOf));
  return isRecord(value) ? Object.values(value).flatMap((one) => filesIn(one, fileOf)) : [];
}
