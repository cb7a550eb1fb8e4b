// Images that are too large for a provider, which would refuse the whole request, and every later one of the conversation.
import { type ImageSides, imageSidesOf, type ProviderName } from '@signalbox/contract';
import { imageDimensionsFromData } from 'image-dimensions';

/** An image of a request, in base64. */
export interface RequestImage {
  readonly fileId: string;
  readonly content: string;
}

/** What cameras write before the dimensions is shorter. In base64: a multiple of four characters. */
const HEADER_CHARACTERS = 512 * 1024;

/** Why the model does not get them, by the ids of the files. `images`: the newest first. */
export function imagesLeftOut(provider: ProviderName, images: readonly RequestImage[]): Map<string, string> {
  const sides = imageSidesOf(provider);
  return sides ? leftOut(sides, images) : new Map();
}

function leftOut({ maxPixels, crowded }: ImageSides, images: readonly RequestImage[]): Map<string, string> {
  const measured = images.map((image) => ({ ...image, pixels: longestSide(image.content) }));
  const why = `its model takes images of at most ${maxPixels} pixels on a side`;
  const tooLarge = measured.filter(({ pixels }) => pixels > maxPixels).map(({ fileId }) => [fileId, why] as const);
  const fitting = measured.filter(({ pixels }) => pixels <= maxPixels);
  if (!crowded || !fitting.some(({ pixels }) => pixels > crowded.maxPixels)) return new Map(tooLarge);
  const whyOlder = `only the newest ${crowded.images} images are shown, because one has over ${crowded.maxPixels} pixels on a side`;
  const older = fitting.slice(crowded.images).map(({ fileId }) => [fileId, whyOlder] as const);
  return new Map([...tooLarge, ...older]);
}

/** 0 if the header does not say it. */
function longestSide(content: string): number {
  const size = imageDimensionsFromData(Buffer.from(content.slice(0, HEADER_CHARACTERS), 'base64'));
  return size ? Math.max(size.width, size.height) : 0;
}
